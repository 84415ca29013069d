; Names of the file itself: parameters, variables of functions, labels. They refer to nothing elsewhere.
(parameter pattern: (identifier) @local)
(let_declaration pattern: (identifier) @local)
(closure_parameters (identifier) @local)
(for_expression pattern: (identifier) @local)
