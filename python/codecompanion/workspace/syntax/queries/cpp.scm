; Definitions
(function_definition
  declarator: [
    (function_declarator declarator: [(identifier) (field_identifier) (destructor_name) (operator_name)] @name)
    (function_declarator
      declarator: (qualified_identifier
        scope: (_) @receiver
        name: [(identifier) (field_identifier) (destructor_name) (operator_name)] @name))
    (function_declarator
      declarator: (qualified_identifier
        name: (qualified_identifier
          scope: (_) @receiver
          name: [(identifier) (field_identifier) (destructor_name) (operator_name)] @name)))
    (pointer_declarator
      declarator: (function_declarator declarator: [(identifier) (field_identifier)] @name))
    (pointer_declarator
      declarator: (function_declarator
        declarator: (qualified_identifier scope: (_) @receiver name: (identifier) @name)))
    (reference_declarator (function_declarator declarator: [(identifier) (field_identifier) (operator_name)] @name))
    (reference_declarator
      (function_declarator
        declarator: (qualified_identifier
          scope: (_) @receiver
          name: [(identifier) (operator_name)] @name)))
  ]) @definition.function
(declaration
  declarator: [
    (function_declarator declarator: [(identifier) (destructor_name) (operator_name)] @name)
    (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))
    (reference_declarator (function_declarator declarator: (identifier) @name))
  ]) @definition.function
(field_declaration
  declarator: [
    (function_declarator declarator: (field_identifier) @name)
    (pointer_declarator declarator: (function_declarator declarator: (field_identifier) @name))
    (reference_declarator (function_declarator declarator: (field_identifier) @name))
  ]) @definition.method
(class_specifier name: (_) @name body: (_) @body) @definition.class
(struct_specifier name: (_) @name body: (_) @body) @definition.class
(union_specifier name: (_) @name body: (_) @body) @definition.class
(enum_specifier name: (_) @name body: (_) @body) @definition.type
(type_definition declarator: (type_identifier) @name) @definition.type
(alias_declaration name: (_) @name) @definition.type
(concept_definition name: (_) @name) @definition.type
(namespace_definition name: (_) @name body: (_) @body) @definition.module
(preproc_def name: (_) @name) @definition.macro
(preproc_function_def name: (_) @name) @definition.macro
(translation_unit
  (declaration declarator: (init_declarator declarator: (identifier) @name)) @definition.variable)

(preproc_include) @import
(using_declaration) @import

(comment) @leading
