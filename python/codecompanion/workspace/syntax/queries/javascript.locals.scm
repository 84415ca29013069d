; Names of the file itself: parameters, variables of functions, labels. They refer to nothing elsewhere.
(formal_parameters (identifier) @local)
(formal_parameters (assignment_pattern left: (identifier) @local))
(formal_parameters (object_pattern (shorthand_property_identifier_pattern) @local))
(arrow_function parameter: (identifier) @local)
(statement_block (lexical_declaration (variable_declarator name: (identifier) @local)))
(statement_block (variable_declaration (variable_declarator name: (identifier) @local)))
(statement_block
  (lexical_declaration
    (variable_declarator name: (object_pattern (shorthand_property_identifier_pattern) @local))))
(for_in_statement left: (identifier) @local)
(pair key: (property_identifier) @label)
