;; What an operator does in Emacs, by eglot: sees a mistake, corrects it by the code action, renames a
;; variable, formats and saves. The configuration of examples/editors starts the server.
(require 'cl-lib)
(require 'eglot)
(load (concat (getenv "EDITORS") "/fabsh.el") nil t)
(setq eglot-connect-timeout 60 eglot-sync-connect 60 eglot-autoshutdown nil
      eglot-confirm-server-initiated-edits nil)
(defvar seen nil)
(defun saw (&rest words) (push (mapconcat (lambda (w) (format "%s" w)) words " ") seen))
(defun until (test)
  "Wait until TEST holds."
  (let ((left 6000))
    (while (and (not (funcall test)) (> (cl-decf left) 0)) (accept-process-output nil 0.01))))
(defvar findings nil)
(defvar reports 0)
(find-file "links.star")
(cl-defmethod eglot-handle-notification :after
  (_server (_method (eql textDocument/publishDiagnostics)) &key diagnostics &allow-other-keys)
  (setq findings (append diagnostics nil)) (cl-incf reports))
(eglot-ensure)
(run-hooks 'post-command-hook) ; eglot-ensure connects after a command
(until (lambda () (eglot-current-server)))
(until (lambda () findings))
(defun changed (fn)
  "Call FN, which changes the text, and wait for its findings."
  (let ((before reports)) (funcall fn) (eglot--signal-textDocument/didChange) (until (lambda () (> reports before)))))
(defun request (method params) (jsonrpc-request (eglot--current-server-or-lose) method params :timeout 60))
(dolist (d findings)
  (let ((start (plist-get (plist-get d :range) :start)))
    (saw "finding" (plist-get start :line) (plist-get start :character) (plist-get d :source) (plist-get d :message))))
(let ((actions (request :textDocument/codeAction
                        (list :textDocument (eglot--TextDocumentIdentifier) :range (plist-get (car findings) :range)
                              :context (list :diagnostics (vconcat findings))))))
  (mapc (lambda (a) (saw "action" (plist-get a :title))) actions)
  (changed (lambda () (eglot--apply-workspace-edit (plist-get (aref actions 0) :edit)))))
(saw "left" (length findings))
(goto-char (point-min))
(search-forward "for prt")
(backward-char)
(changed (lambda () (eglot-rename "port")))
(changed (lambda () (eglot-format-buffer)))
(save-buffer)
(eglot-shutdown (eglot-current-server))
(with-temp-file "seen" (insert (mapconcat #'identity (reverse seen) "\n") "\n"))
