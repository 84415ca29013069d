(section (atx_heading heading_content: (inline) @name) @head) @definition.heading
(setext_heading heading_content: (paragraph (inline) @name) @head) @definition.heading
