; Definitions
(function_declaration name: (_) @name body: (_) @body) @definition.function
(method_declaration
  receiver: (parameter_list
    (parameter_declaration
      type: [
        (type_identifier) @receiver
        (pointer_type (type_identifier) @receiver)
        (generic_type type: (type_identifier) @receiver)
        (pointer_type (generic_type type: (type_identifier) @receiver))
      ]))
  name: (_) @name
  body: (_) @body) @definition.method
(type_declaration (type_spec name: (_) @name type: (struct_type)) @definition.class)
(type_declaration (type_spec name: (_) @name type: (interface_type)) @definition.interface)
(type_declaration (type_spec name: (_) @name) @definition.type)
(type_declaration (type_alias name: (_) @name) @definition.type)
(source_file (const_declaration (const_spec name: (identifier) @name) @definition.constant))
(source_file (var_declaration (var_spec name: (identifier) @name) @definition.variable))
(source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @definition.variable)))

(import_declaration) @import

(comment) @leading
