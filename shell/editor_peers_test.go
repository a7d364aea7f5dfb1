package shell

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad/ibsim/ibsimtest"
)

// neovim opens a script with a mistake, waits for its finding, completes "port.", formats,
// and writes what it saw.
const neovim = `
local out = io.open("seen", "w")
local function seen(...) out:write(table.concat({...}, " "), "\n") out:flush() end
vim.cmd("edit links.star")
local client = vim.lsp.start_client({name = "fabsh", cmd = {os.getenv("FABSH"), "lsp"}, root_dir = vim.fn.getcwd()})
vim.lsp.buf_attach_client(0, client)
local function findings(n)
  vim.wait(20000, function() return #vim.diagnostic.get(0) == n end, 10)
  for _, d in ipairs(vim.diagnostic.get(0)) do seen("finding", d.lnum, d.col, d.source, d.message) end
end
vim.wait(20000, function() return vim.lsp.buf_is_attached(0, client) end, 10)
findings(1)
vim.api.nvim_buf_set_lines(0, 3, 4, true, {"            print(port.)"})
vim.wait(20000, function() return #vim.diagnostic.get(0) == 1 and vim.diagnostic.get(0)[1].lnum == 3 end, 10)
vim.api.nvim_win_set_cursor(0, {4, 23})
local params = vim.lsp.util.make_position_params(0, vim.lsp.get_client_by_id(client).offset_encoding)
local answer = vim.lsp.buf_request_sync(0, "textDocument/completion", params, 20000)[client].result
local words = {}
for _, item in ipairs(answer.items) do if item.label:match("^phys") then table.insert(words, item.textEdit.newText) end end
seen("completion", unpack(words))
vim.api.nvim_buf_set_lines(0, 3, 4, true, {"            print( port.physical_state )"})
findings(0)
vim.lsp.buf.formatting_sync(nil, 20000)
for _, l in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, true)) do seen("line", l) end
vim.lsp.stop_client(client)
vim.wait(20000, function() return vim.lsp.client_is_stopped(client) end, 10)
out:close()
vim.cmd("qall!")
`

// TestNeovim: an editor that was not written here is served.
func TestNeovim(t *testing.T) {
	t.Parallel()
	fabsh, err := exec.LookPath("fabsh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := "def audit(fabric):\n    for node in fabric.nodes:\n        for port in node.ports:\n            print(port.state == \"activ\")\n"
	for name, text := range map[string]string{"links.star": script, "test.lua": neovim} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := ibsimtest.Command(t, "nvim", "--clean", "--headless", "-n", "-c", "luafile test.lua", "-c", "cquit")
	c.Dir = dir
	c.Env = append(c.Env, testEnv(t)...)
	c.Env = append(c.Env, "FABSH="+fabsh)
	for _, kv := range ibsimtest.Env(t) { // its programs and libraries come first
		if len(kv) > 5 && (kv[:5] == "PATH=" || kv[:5] == "LD_LI") {
			c.Env = append(c.Env, kv)
		}
	}
	if runtime := filepath.Join(filepath.Dir(filepath.Dir(c.Path)), "share/nvim/runtime"); isDir(runtime) {
		c.Env = append(c.Env, "VIMRUNTIME="+runtime)
	}
	shown, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("nvim: %v\n%s", err, shown)
	}
	seen, err := os.ReadFile(filepath.Join(dir, "seen"))
	if err != nil {
		t.Fatal(err)
	}
	want := `finding 3 32 fabsh port.state is never "activ" (did you mean active?)
completion physical_state
line def audit(fabric):
line     for node in fabric.nodes:
line         for port in node.ports:
line             print(port.physical_state)
`
	if diff := cmp.Diff(want, string(seen)); diff != "" {
		t.Errorf("-want +got:\n%s\n%s", diff, shown)
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
