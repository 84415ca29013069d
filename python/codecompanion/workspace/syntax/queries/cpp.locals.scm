; Names of the file itself: parameters, variables of functions, labels. They refer to nothing elsewhere.
(parameter_declaration declarator: (identifier) @local)
(parameter_declaration declarator: (pointer_declarator declarator: (identifier) @local))
(compound_statement (declaration declarator: (identifier) @local))
(compound_statement (declaration declarator: (init_declarator declarator: (identifier) @local)))
(compound_statement (declaration declarator: (pointer_declarator declarator: (identifier) @local)))
(compound_statement
  (declaration declarator: (init_declarator declarator: (pointer_declarator declarator: (identifier) @local))))
(parameter_declaration declarator: (reference_declarator (identifier) @local))
