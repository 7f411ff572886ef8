package dashboard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"syscall"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/loop"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/web"
	"github.com/starling-network/starling/web/access"
)

// WebOptions say what a server shows, and to whom.
type WebOptions struct {
	Listen  string            // host:port
	Tokens  string            // file of bearer tokens; "": none are needed
	Hosts   []string          // names by which the server is reached, in addition to the loopback's
	Network string            // HTTP interface of a validator; "": no network is shown
	Data    string            // folder that the files of submitted jobs name theirs in; "": no job can be submitted
	Home    string            // folder of the account that orders submitted jobs on the Network; "": they are trained here
	Blobs   []string          // multiaddrs at which the workers of the Network fetch jobs; none: any port of the loopback
	Jobs    int               // that are ordered on the Network at a time
	NoPages bool              // the API without the dashboard
	Loops   *loop.Service     // model with which training loops begin; nil: there are none
	Push    string            // store that gets the models of submitted jobs, each below it; "": none
	Say     func(text string) // news for the person who starts the server; may be nil
	Version string            // of the binary
	Log     *slog.Logger      // nil: nowhere
	Opened  func(url string)  // when it answers
}

// DefaultWeb is where the dashboard is, unless that port is taken or another is asked for.
const DefaultWeb = "127.0.0.1:7300"

// ErrOpenToAll is returned for a server that strangers could reach and that asks for no token.
var ErrOpenToAll = errors.New("a server beyond the loopback needs tokens")

// OpenListener opens the address, if it may be opened.
func (o WebOptions) OpenListener(ctx context.Context) (net.Listener, error) {
	loopback, err := access.Loopback(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("dashboard: %q is not host:port: %w", o.Listen, err)
	}
	if !loopback && o.Tokens == "" {
		return nil, fmt.Errorf("%w: %s can be reached from other machines", ErrOpenToAll, o.Listen)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Listen)
	if errors.Is(err, syscall.EADDRINUSE) && o.Listen == DefaultWeb {
		l, err = new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("dashboard: cannot listen: %w: give another address", err)
	}
	return l, nil
}

func (o WebOptions) Serve(ctx context.Context, l net.Listener, c web.Config) error {
	if o.Tokens != "" && c.Tokens == nil {
		tokens, err := access.ReadTokens(o.Tokens)
		if err != nil {
			return errors.Join(err, l.Close())
		}
		c.Tokens = tokens
	}
	c.Hosts, c.Log, c.NoPages = o.Hosts, o.Log, o.NoPages
	c.Version = api.Version{Version: o.Version, Numerics: int(kernel.Newest), Go: runtime.Version(), Orders: o.Home != ""}
	s := web.New(c)
	if o.Opened != nil {
		o.Opened("http://" + l.Addr().String())
	}
	return s.Serve(ctx, l)
}

// dashboard shows the run of this process while it runs. Its data come from the run's folder and from the watch and
// the chain, which are asked only while a page is open.
type dashboard struct {
	View   *ChainView
	live   *LiveRun
	detach func()
	cancel context.CancelFunc
	done   chan error
}

// Use shows the network of the run, too.
func (d *dashboard) Use(c *client.Client, links func(context.Context) ([]api.Link, error)) {
	d.live.from(links)
	d.View.Use(c)
}

// OpenDashboard begins to show a run. A port that cannot be had is news, and holds up no training.
func OpenDashboard(ctx context.Context, opt consumer.Options, job func() string,
	p *ProgressGauges) *dashboard {
	d := &dashboard{View: &ChainView{}, detach: func() {}, cancel: func() {}, done: make(chan error, 1)}
	d.done <- nil
	live := &LiveRun{job: job, View: d.View, progress: p}
	d.live = live
	if opt.Shown != nil {
		opt.Shown(live)
	}
	if opt.Web == "" {
		return d
	}
	say := func(text string) {
		if opt.Say != nil {
			opt.Say(text)
		}
	}
	lib, err := runs.One(opt.Dir)
	if err == nil {
		d.detach, err = lib.Attach(opt.Dir, live)
	}
	o := WebOptions{Listen: opt.Web, Version: opt.Version, Opened: func(url string) { say("dashboard: " + url) }}
	var l net.Listener
	if err == nil {
		l, err = o.OpenListener(ctx)
	}
	if err != nil {
		say("no dashboard: " + err.Error())
		return d
	}
	ctx, d.cancel = context.WithCancel(context.WithoutCancel(ctx))
	<-d.done
	go func() {
		d.done <- o.Serve(ctx, l, web.Config{Runs: lib, Network: d.View,
			Room: func() (int64, bool) { return disk.Free(opt.Dir) }})
	}()
	return d
}

// Close ends the dashboard. Open pages receive the end of the server.
func (d *dashboard) Close() error {
	d.View.Use(nil)
	d.detach()
	d.cancel()
	return <-d.done
}
