; Names of the file itself: parameters, variables of functions, labels. They refer to nothing elsewhere.
(formal_parameter name: (identifier) @local)
(local_variable_declaration declarator: (variable_declarator name: (identifier) @local))
; Names of what belongs to something else, though a local may be called the same.
(method_invocation name: (identifier) @member)
(field_access field: (identifier) @member)
