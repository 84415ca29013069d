; Definitions
(struct_item name: (_) @name) @definition.class
(union_item name: (_) @name) @definition.class
(enum_item name: (_) @name body: (_) @body) @definition.type
(type_item name: (_) @name) @definition.type
(trait_item name: (_) @name body: (_) @body) @definition.interface
(function_item name: (_) @name body: (_) @body) @definition.function
(function_signature_item name: (_) @name) @definition.function
(mod_item name: (_) @name body: (_) @body) @definition.module
(macro_definition name: (_) @name) @definition.macro
(const_item name: (_) @name) @definition.constant
(static_item name: (_) @name) @definition.constant
(impl_item type: (type_identifier) @name body: (_) @body) @scope
(impl_item type: (generic_type type: (type_identifier) @name) body: (_) @body) @scope

(use_declaration) @import
(extern_crate_declaration) @import

(line_comment) @leading
(block_comment) @leading
(attribute_item) @leading
