; Names of the file itself: parameters, variables of functions, labels. They refer to nothing elsewhere.
(method_parameters (identifier) @local)
(block_parameters (identifier) @local)
(assignment left: (identifier) @local)
; Names of what belongs to something else, though a local may be called the same.
(call method: (identifier) @member)
