module fabsh/vsix

go 1.26.0
