; Definitions
(function_declaration
  name: [
    (identifier) @name
    (dot_index_expression table: (_) @receiver field: (identifier) @name)
  ]
  parameters: (_) @head) @definition.function
(function_declaration
  name: (method_index_expression table: (_) @receiver method: (identifier) @name)
  parameters: (_) @head) @definition.method
(assignment_statement
  (variable_list
    .
    name: [
      (identifier) @name
      (dot_index_expression table: (_) @receiver field: (identifier) @name)
    ])
  (expression_list . value: (function_definition parameters: (_) @head))) @definition.function
(table_constructor
  (field name: (identifier) @name value: (function_definition parameters: (_) @head)) @definition.function)
(chunk
  (variable_declaration (assignment_statement (variable_list name: (identifier) @name))) @definition.variable)
(chunk
  (assignment_statement
    (variable_list
      .
      name: (dot_index_expression table: (_) @receiver field: (identifier) @name))) @definition.variable)

; Imports
((variable_declaration
  (assignment_statement
    (variable_list name: (identifier) @import.name)
    (expression_list value: (function_call name: (identifier) @_function)))) @import
  (#eq? @_function "require"))
((variable_declaration
  (assignment_statement
    (variable_list name: (identifier) @import.name)
    (expression_list
      value: (dot_index_expression table: (function_call name: (identifier) @_function))))) @import
  (#eq? @_function "require"))

(comment) @leading
