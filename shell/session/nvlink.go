package session

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/hosts"
)

// NVLinkDomain returns the NVLink domain of this host, ClusterUUID.CliqueID, as nvidia-smi -q shows it;
// "": the host has no nvidia-smi, or is in no domain. Only absolute entries of PATH are searched: whoever
// owns the working directory must not choose what root runs.
func NVLinkDomain(ctx context.Context) (string, error) {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, "nvidia-smi")
		if st, err := os.Stat(path); filepath.IsAbs(dir) && err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return domainBy(ctx, path, smiLimit)
		}
	}
	return "", nil
}

const (
	// smiLimit is how long nvidia-smi may take: it loads the driver if no process keeps it loaded.
	smiLimit = 10 * time.Second
	// maxSMI is how much it may print, in bytes; it prints some 20 KB for a GPU.
	maxSMI = 8 << 20
)

// domainBy returns the domain by the program at path.
func domainBy(ctx context.Context, path string, limit time.Duration) (string, error) {
	late := fmt.Errorf("nvidia-smi -q: timed out after %v", limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stdout, stderr := boundedBuffer{full: stop}, boundedBuffer{full: stop}
	c := exec.CommandContext(ctx, path, "-q")
	c.Stdout, c.Stderr = &stdout, &stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its children end with it
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = time.Second
	ended := make(chan error, 1)
	go func() { ended <- c.Run() }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done(): // one that waits for its driver cannot be killed, and is left behind
		return "", context.Cause(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		text := strings.TrimSpace(stderr.data.String() + "\n" + stdout.data.String())
		text, _, _ = strings.Cut(text, "\n")
		if text != "" {
			err = fmt.Errorf("%w: %s", err, strconv.Quote(fabric.Clip(text)))
		}
		return "", fmt.Errorf("nvidia-smi -q: %w", err)
	}
	domain, err := hosts.LocalDomain(stdout.data.Bytes())
	if err != nil {
		err = fmt.Errorf("nvidia-smi -q: %w", err)
	}
	return domain, err
}

// boundedBuffer is a buffer that refuses more than maxSMI bytes, and then calls full.
type boundedBuffer struct {
	data bytes.Buffer // not embedded: its ReadFrom has no bound
	full context.CancelCauseFunc
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.data.Len()+len(p) > maxSMI {
		err := fmt.Errorf("nvidia-smi -q: more than %d MB of output", maxSMI>>20)
		b.full(err)
		return 0, err
	}
	return b.data.Write(p)
}
