-- Neovim 0.7 and newer: in init.lua, or in plugin/fabsh.lua below its configuration.
vim.api.nvim_create_autocmd({"BufRead", "BufNewFile"}, {pattern = "*.star", callback = function()
  vim.bo.filetype = "starlark"
  local config = {name = "fabsh", cmd = {"fabsh", "lsp"}, root_dir = vim.fn.getcwd()}
  if vim.lsp.start then
    vim.lsp.start(config)
  else -- 0.7, of Debian 12
    fabsh_client = fabsh_client or vim.lsp.start_client(config)
    vim.lsp.buf_attach_client(0, fabsh_client)
  end
end})
