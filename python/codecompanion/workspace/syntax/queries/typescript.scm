; Definitions
(class_declaration name: (_) @name body: (_) @body) @definition.class
(class name: (_) @name body: (_) @body) @definition.class
(function_declaration name: (_) @name body: (_) @body) @definition.function
(generator_function_declaration name: (_) @name body: (_) @body) @definition.function
(method_definition name: (_) @name body: (_) @body) @definition.method
(lexical_declaration
  (variable_declarator
    name: (identifier) @name
    value: [
      (arrow_function body: (_) @body)
      (function_expression body: (_) @body)
      (generator_function body: (_) @body)
    ])) @definition.function
(variable_declaration
  (variable_declarator
    name: (identifier) @name
    value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)])) @definition.function
(assignment_expression
  left: [(identifier) @name (member_expression property: (property_identifier) @name)]
  right: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @definition.function
(public_field_definition
  name: (_) @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @definition.method
(abstract_class_declaration name: (_) @name body: (_) @body) @definition.class
(interface_declaration name: (_) @name body: (_) @body) @definition.interface
(type_alias_declaration name: (_) @name) @definition.type
(enum_declaration name: (_) @name body: (_) @body) @definition.type
(internal_module name: (_) @name body: (_) @body) @definition.module
(module name: (_) @name body: (_) @body) @definition.module
(function_signature name: (_) @name) @definition.function
(method_signature name: (_) @name) @definition.method
(abstract_method_signature name: (_) @name) @definition.method
(pair
  key: (property_identifier) @name
  value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @definition.function
(program (lexical_declaration (variable_declarator name: (identifier) @name)) @definition.variable)
(program (variable_declaration (variable_declarator name: (identifier) @name)) @definition.variable)
(program
  (export_statement
    declaration: (lexical_declaration (variable_declarator name: (identifier) @name)) @definition.variable))

; Imports
(import_statement) @import
(import_statement (import_clause (identifier) @import.name)) @import
(import_statement (import_clause (namespace_import (identifier) @import.name))) @import
(import_statement
  (import_clause (named_imports (import_specifier name: (identifier) @import.name !alias)))) @import
(import_statement (import_clause (named_imports (import_specifier alias: (identifier) @import.name)))) @import
(import_statement (import_require_clause (identifier) @import.name)) @import
((lexical_declaration
  (variable_declarator
    name: [
      (identifier) @import.name
      (object_pattern (shorthand_property_identifier_pattern) @import.name)
      (object_pattern (pair_pattern value: (identifier) @import.name))
    ]
    value: (call_expression function: (identifier) @_function))) @import
  (#eq? @_function "require"))
((variable_declaration
  (variable_declarator
    name: [
      (identifier) @import.name
      (object_pattern (shorthand_property_identifier_pattern) @import.name)
    ]
    value: (call_expression function: (identifier) @_function))) @import
  (#eq? @_function "require"))

; Comments and decorators that stand above a definition belong to it
(comment) @leading
(decorator) @leading
