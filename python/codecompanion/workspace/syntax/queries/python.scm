; Definitions
(class_definition name: (identifier) @name body: (_) @body) @definition.class
(function_definition name: (identifier) @name body: (_) @body) @definition.function
(module (expression_statement (assignment left: (identifier) @name)) @definition.variable)
(class_definition body: (block (expression_statement (assignment left: (identifier) @name)) @definition.variable))
(type_alias_statement left: (type (identifier) @name)) @definition.type

; Imports
(import_statement name: (dotted_name . (identifier) @import.name)) @import
(import_statement name: (aliased_import alias: (identifier) @import.name)) @import
(import_from_statement name: (dotted_name (identifier) @import.name)) @import
(import_from_statement name: (aliased_import alias: (identifier) @import.name)) @import
(import_from_statement (wildcard_import)) @import
(future_import_statement) @import

; Comments that stand above a definition belong to it
(comment) @leading
