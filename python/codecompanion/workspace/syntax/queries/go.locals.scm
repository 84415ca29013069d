; Names of the file itself: parameters, variables of functions, labels. They refer to nothing elsewhere.
(parameter_declaration name: (identifier) @local)
(short_var_declaration left: (expression_list (identifier) @local))
(range_clause left: (expression_list (identifier) @local))
