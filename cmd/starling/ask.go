package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/rest"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/dashboard"
	"github.com/starling-network/starling/node/runs"
)

// place is where a command looks for jobs: in a folder, at a server, or on a network.
type place struct {
	dir, api, token, network string
}

// server adds the flags of a server.
func (p *place) server(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.api, "api", os.Getenv("STARLING_URL"),
		"address of a starling web to ask, such as http://127.0.0.1:7300 (default: $STARLING_URL)")
	f.StringVar(&p.token, "token-file", "", "file whose first word is the token of the server (default: $STARLING_TOKEN)")
}

// flags adds those of every place.
func (p *place) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.dir, "dir", "out", "folder of runs to look in")
	p.server(cmd)
	cmd.Flags().StringVar(&p.network, "network", "", "HTTP interface of a validator: look at the jobs of its network")
}

// asking is a client of a place.
type asking struct {
	*rest.Client
	close func()
}

// open returns a client of the place; data is the folder of files of examples, or "".
func (p place) open(cmd *cobra.Command, data string) (*asking, error) {
	var said []string
	for _, name := range []string{"api", "network", "dir", "data"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			said = append(said, "--"+name)
		}
	}
	if len(said) > 1 {
		return nil, usage(cmd, fmt.Errorf("%s are given: one of them says where to look", strings.Join(said, " and ")))
	}
	if len(said) == 1 && said[0] != "--api" {
		p.api = "" // what the environment says is for those who say nothing
	}
	where := dashboard.Source{Network: p.network, Dir: p.dir, Data: data,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))}
	if p.network == "" {
		where.API, where.Token = p.api, os.Getenv("STARLING_TOKEN")
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
		return nil, askError(err)
	}
	return &asking{c, done}, nil
}

// find returns a client of the place that a job is at, and the job. The job may also be named by the folder of its run.
func (p place) find(cmd *cobra.Command, name string) (*asking, api.Job, error) {
	if p.network == "" && (p.api == "" || cmd.Flags().Changed("dir")) {
		if path := filepath.Clean(name); name != "" && isFolder(path) && !isFolder(filepath.Join(p.dir, name)) {
			p.dir, name = path, ""
		}
	}
	a, err := p.open(cmd, "")
	if err != nil {
		return nil, api.Job{}, err
	}
	if name == "" {
		name = filepath.Base(absolute(p.dir))
	}
	j, err := a.Find(cmd.Context(), name)
	if err != nil {
		a.close()
		return nil, j, askError(err)
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

// askError gives what a server refuses its exit code.
func askError(err error) error {
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

// jobCommand is a command about one job: ask answers for it, whole is the answer for programs, and print shows it to
// people.
func jobCommand[T any](c *cli, use, short, long, example string,
	ask func(cmd *cobra.Command, a *asking, j api.Job) (T, error), whole func(T) terminal.Answer,
	print func(T, terminal.Form) error) *cobra.Command {
	var p place
	cmd := &cobra.Command{
		Use: use + " JOB", Short: short, Example: example,
		Long: long + "\n\n" + jobNames,
		Args: exactly("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, j, err := p.find(cmd, args[0])
			if err != nil {
				return err
			}
			defer a.close()
			answer, err := ask(cmd, a, j)
			if err != nil {
				return askError(err)
			}
			if c.form.Machine() {
				return c.form.Print(os.Stdout, whole(answer))
			}
			return print(answer, c.form)
		},
	}
	p.flags(cmd)
	return cmd
}

// jobNames is what the help of commands says about their argument.
const jobNames = `JOB is the identifier of a job at the place that is asked, its name, or the beginning of its
identifier; or the folder of its run. The place is a folder of runs (--dir), the server of starling web (--api), or a
network (--network), whose chain knows what was ordered, attested, disputed and paid, and neither losses nor logs.`

// stamp is a time in seconds since 1970, for people.
func stamp(seconds int64) string { return time.Unix(seconds, 0).Local().Format(time.DateTime) }

// when is a time for people, or nothing.
func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}

// number is a figure that may be missing.
func number(x *float64) string {
	if x == nil {
		return ""
	}
	return fmt.Sprintf("%.4f", *x)
}

// part is what was done of what is planned, if that is known.
func part(done, planned int) string {
	if planned == 0 {
		return fmt.Sprint(done)
	}
	return fmt.Sprintf("%d/%d", done, planned)
}
