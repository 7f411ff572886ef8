// Package source is where a command looks for jobs and data: in a folder, at a server of starling web, or on a network.
// It asks, and commands show what came of it.
package source

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/rest"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/dashboard"
	"github.com/starling-network/starling/node/runs"
)

// Place is where a command looks for jobs: in a folder, at a server, or on a network.
type Place struct {
	dir, API, token, network string
}

// Server adds the flags of a server.
func (p *Place) Server(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.API, "api", os.Getenv("STARLING_URL"),
		"address of a starling web to ask, such as http://127.0.0.1:7300 (default: $STARLING_URL)")
	f.StringVar(&p.token, "token-file", "", "file whose first word is the token of the server (default: $STARLING_TOKEN)")
}

// Flags adds those of every place.
func (p *Place) Flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.dir, "dir", "out", "folder of runs to look in")
	p.Server(cmd)
	cmd.Flags().StringVar(&p.network, "network", "", "HTTP interface of a validator: look at the jobs of its network")
}

// Client is a client of a place.
type Client struct {
	*rest.Client
	Close func()
}

// Open returns a client of the place; data is the folder of files of examples, or "".
func (p Place) Open(cmd *cobra.Command, data string) (*Client, error) {
	var said []string
	for _, name := range []string{"api", "network", "dir", "data"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			said = append(said, "--"+name)
		}
	}
	if len(said) > 1 {
		return nil, usage.Error(cmd, fmt.Errorf("%s are given: one of them says where to look", strings.Join(said, " and ")))
	}
	if len(said) == 1 && said[0] != "--api" {
		p.API = "" // what the environment says is for those who say nothing
	}
	where := dashboard.Source{Network: p.network, Dir: p.dir, Data: data,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))}
	if p.network == "" {
		where.API, where.Token = p.API, os.Getenv("STARLING_TOKEN")
	}
	if p.token != "" {
		text, err := os.ReadFile(p.token)
		words := strings.Fields(string(text))
		if err == nil && len(words) == 0 {
			err = errors.New("it is empty")
		}
		if err != nil {
			return nil, terminal.WithExit(&terminal.Problem{Code: "TOKEN_UNREADABLE", What: "cannot read the token",
				Why: err.Error(), Fix: "give a file that begins with it"}, terminal.ExitAuth)
		}
		where.Token = words[0]
	}
	c, done, err := where.Open()
	switch {
	case errors.Is(err, runs.ErrNoRuns):
		return nil, terminal.WithExit(&terminal.Problem{Code: "NOT_A_RUN", What: "there is no folder " + p.dir,
			Fix: "say with --dir where runs are, or ask a server (--api) or a network (--network)"}, terminal.ExitNotFound)
	case err != nil && p.network != "":
		return nil, err
	case err != nil:
		return nil, Explain(err)
	}
	return &Client{c, done}, nil
}

// Find returns a client of the place that a job is at, and the job. The job may also be named by the folder of its run.
func (p Place) Find(cmd *cobra.Command, name string) (*Client, api.Job, error) {
	if p.network == "" && (p.API == "" || cmd.Flags().Changed("dir")) {
		if path := filepath.Clean(name); name != "" && isFolder(path) && !isFolder(filepath.Join(p.dir, name)) {
			p.dir, name = path, ""
		}
	}
	a, err := p.Open(cmd, "")
	if err != nil {
		return nil, api.Job{}, err
	}
	if name == "" {
		name = filepath.Base(absolute(p.dir))
	}
	j, err := a.Find(cmd.Context(), name)
	if err != nil {
		a.Close()
		return nil, j, Explain(err)
	}
	return a, j, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// askExits are the exit codes for what a server refuses.
var askExits = map[int]int{
	0: terminal.ExitUnreachable, http.StatusBadRequest: terminal.ExitUsage,
	http.StatusUnprocessableEntity: terminal.ExitUsage, http.StatusUnauthorized: terminal.ExitAuth,
	http.StatusForbidden: terminal.ExitAuth, http.StatusMisdirectedRequest: terminal.ExitAuth,
	http.StatusNotFound: terminal.ExitNotFound,
	http.StatusConflict: terminal.ExitConflict, http.StatusBadGateway: terminal.ExitUnreachable,
	http.StatusServiceUnavailable: terminal.ExitUnreachable, http.StatusGatewayTimeout: terminal.ExitTimeout,
}

// Explain gives what a server refuses its exit code.
func Explain(err error) error {
	e, ok := errors.AsType[*rest.Error](err)
	if !ok {
		return err
	}
	code, known := askExits[e.Status]
	if !known {
		code = terminal.ExitFailure
	}
	if e.Code == "ADDRESS_INVALID" {
		code = terminal.ExitUsage
	}
	return terminal.WithExit(err, code)
}
