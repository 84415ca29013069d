; Names of the file itself: parameters, variables of functions, labels. They refer to nothing elsewhere.
(parameters (identifier) @local)
(block (variable_declaration (assignment_statement (variable_list (identifier) @local))))
(block (variable_declaration (variable_list (identifier) @local)))
(for_generic_clause (variable_list (identifier) @local))
(for_numeric_clause name: (identifier) @local)
(field name: (identifier) @label)
; Names of what belongs to something else, though a local may be called the same.
(dot_index_expression field: (identifier) @member)
(method_index_expression method: (identifier) @member)
