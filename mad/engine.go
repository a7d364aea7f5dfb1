package mad

type callState struct{}
