//go:build !linux || !(amd64 || arm64)

package confine

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
)

// command starts the program with a clean environment: nothing else is possible here.
func command(ctx context.Context, b Sandbox, dir string) (*exec.Cmd, error) {
	if b.Level != Reduced {
		return nil, fmt.Errorf("%w: it is built for Linux on amd64 and arm64, this is %s on %s", ErrUnavailable,
			runtime.GOOS, runtime.GOARCH)
	}
	at, err := scratch(dir)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, b.Command[0], b.Command[1:]...)
	cmd.Env, cmd.Dir = b.at(at), at
	return cmd, nil
}
