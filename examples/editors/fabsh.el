;; Emacs 29 and newer, or older ones with the package eglot (Debian: elpa-eglot): in init.el.
(define-derived-mode fabsh-mode python-mode "fabsh" "Scripts of fabsh, in Starlark.")
(add-to-list 'auto-mode-alist '("\\.star\\'" . fabsh-mode))
(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs '(fabsh-mode . ("fabsh" "lsp"))))
(autoload 'eglot-ensure "eglot")
(add-hook 'fabsh-mode-hook #'eglot-ensure)
