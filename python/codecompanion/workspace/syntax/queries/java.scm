; Definitions
(class_declaration name: (_) @name body: (_) @body) @definition.class
(record_declaration name: (_) @name body: (_) @body) @definition.class
(enum_declaration name: (_) @name body: (_) @body) @definition.type
(interface_declaration name: (_) @name body: (_) @body) @definition.interface
(annotation_type_declaration name: (_) @name body: (_) @body) @definition.interface
(method_declaration name: (_) @name body: (_)? @body) @definition.method
(constructor_declaration name: (_) @name body: (_) @body) @definition.method
(field_declaration declarator: (variable_declarator name: (_) @name)) @definition.variable

(import_declaration) @import

(line_comment) @leading
(block_comment) @leading
