; Definitions
(function_definition name: (_) @name body: (_) @body) @definition.function
(program (variable_assignment name: (variable_name) @name) @definition.variable)
(program (declaration_command (variable_assignment name: (variable_name) @name)) @definition.variable)

((command name: (command_name) @_function) @import
  (#any-of? @_function "source" "."))

(comment) @leading
