; Definitions
(class name: [(constant) @name (scope_resolution scope: (_) @receiver name: (_) @name)]) @definition.class
(module name: [(constant) @name (scope_resolution scope: (_) @receiver name: (_) @name)]) @definition.module
(method name: (_) @name body: (_)? @body) @definition.method
(singleton_method name: (_) @name body: (_)? @body) @definition.method
(assignment left: (constant) @name) @definition.constant

((call method: (identifier) @_function) @import
  (#any-of? @_function "require" "require_relative" "load"))

(comment) @leading
