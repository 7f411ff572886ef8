package benchmark

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Done is the result of one bench that ran in a process of its own.
type Done struct {
	Name    string          `json:"name"`
	Seconds float64         `json:"seconds"`
	Report  json.RawMessage `json:"report,omitempty"`
	Bars    []OptionalBar   `json:"bars,omitempty"` // a value is null where a tool was missing
	Error   string          `json:"error,omitempty"`
}

// Run runs a bench of this program in a process of its own, so that its peak memory is its own. An error means that
// the process could not run; an error of the bench itself is in the result.
func Run(ctx context.Context, name string, quick bool) (Done, error) {
	done := Done{Name: name}
	self, err := os.Executable()
	if err != nil {
		return done, err
	}
	args := []string{"bench", name, "-o", "json"}
	if quick {
		args = append(args, "--quick")
	}
	var out, said bytes.Buffer
	process := exec.CommandContext(ctx, self, args...)
	process.Stdout, process.Stderr = &out, &said
	begin := time.Now()
	err = process.Run()
	done.Seconds = float64(time.Since(begin).Milliseconds()) / 1e3
	if ctx.Err() != nil {
		return done, ctx.Err()
	}
	if json.Valid(out.Bytes()) {
		done.Report = bytes.TrimSpace(out.Bytes())
		_ = json.Unmarshal(done.Report, &struct{ Bars *[]OptionalBar }{&done.Bars}) // a report without bars has none
	}
	missed := slices.ContainsFunc(done.Bars, func(b OptionalBar) bool { return b.Misses() != "" })
	switch exit, failed := errors.AsType[*exec.ExitError](err); {
	case failed && !missed: // a bench whose figures miss a bar has run
		done.Error = fmt.Sprintf("%s: %s", exit, strings.TrimSpace(said.String()))
	case !failed && err != nil:
		return done, err
	}
	return done, nil
}
