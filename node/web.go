package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/node/tuning"
	"github.com/starling-network/starling/web"
)

// WebOptions say what a server shows, and to whom.
type WebOptions struct {
	Listen  string           // host:port
	Tokens  string           // file of bearer tokens; "": none are needed
	Hosts   []string         // names by which the server is reached, beside the loopback's
	Network string           // HTTP interface of a validator; "": no network is shown
	Data    string           // folder that the files of submitted jobs name theirs in; "": no job can be submitted
	Version string           // of the binary
	Log     *slog.Logger     // nil: nowhere
	Opened  func(url string) // when it answers
}

// DefaultWeb is where the dashboard is, unless that port is taken or another is asked for.
const DefaultWeb = "127.0.0.1:7300"

// ErrOpenToAll is returned for a server that strangers could reach and that asks for no token.
var ErrOpenToAll = errors.New("a server beyond the loopback needs tokens")

// ServeWeb shows the runs of a folder, or the run in it, until the context ends. Into a folder of runs it trains what is
// submitted to it, if the options say where the data of that is.
func ServeWeb(ctx context.Context, dir string, o WebOptions) error {
	lib, err := runs.Open(dir)
	if err != nil {
		return err
	}
	c := web.Config{Runs: lib, Room: func() (int64, bool) { return disk.Free(dir) }}
	if o.Network != "" {
		chain, err := client.Connect(o.Network, client.KeyFromSeed([32]byte{})) // it signs nothing
		if err != nil {
			return err
		}
		defer chain.Close()
		c.Network = &chainView{address: o.Network, chain: chain}
	}
	l, err := o.listen(ctx)
	if err != nil {
		return err
	}
	if o.Data == "" || lib.Single() {
		return o.serve(ctx, l, c)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	jobs, err := newLauncher(ctx, lib, dir, o)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	shelf := tuning.NewShelf(jobs.data)
	tuner := tuning.NewTuner(shelf, jobs.root)
	models := serve.NewSeveral(tuner, serve.Options{Threads: kernel.Cores, Texts: 4})
	defer models.Close()
	c.Launcher, c.Files, c.Tuner, c.Models = jobs, shelf, tuner, models
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		jobs.run()
	}()
	err = o.serve(ctx, l, c)
	cancel() // also when the server ended by itself
	<-stopped
	return err
}

// listen opens the address, if it may be opened.
func (o WebOptions) listen(ctx context.Context) (net.Listener, error) {
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("node: %q is not host:port: %w", o.Listen, err)
	}
	address, err := netip.ParseAddr(host)
	if loopback := host == "localhost" || err == nil && address.IsLoopback(); !loopback && o.Tokens == "" {
		return nil, fmt.Errorf("%w: %s can be reached from other machines", ErrOpenToAll, o.Listen)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Listen)
	if err != nil && o.Listen == DefaultWeb {
		l, err = new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("node: cannot listen: %w: give another address", err)
	}
	return l, nil
}

func (o WebOptions) serve(ctx context.Context, l net.Listener, c web.Config) error {
	if o.Tokens != "" {
		tokens, err := web.ReadTokens(o.Tokens)
		if err != nil {
			return errors.Join(err, l.Close())
		}
		c.Tokens = tokens
	}
	c.Hosts, c.Log = o.Hosts, o.Log
	c.Version = api.Version{Version: o.Version, Numerics: kernel.Version, Go: runtime.Version()}
	s := web.New(c)
	if o.Opened != nil {
		o.Opened("http://" + l.Addr().String())
	}
	return s.Serve(ctx, l)
}

// dashboard shows the run of this process while it goes on: what it shows comes from the run's folder, and, beside that, from
// the watch and the chain, which are asked only while somebody looks.
type dashboard struct {
	view   *chainView
	live   *liveRun
	detach func()
	cancel context.CancelFunc
	done   chan error
}

// use shows the network of the run, too.
func (d *dashboard) use(n network) {
	d.live.from(n.links)
	d.view.use(n.client())
}

// openDashboard begins to show a run. A port that cannot be had is news, and holds up no training.
func openDashboard(ctx context.Context, opt TrainOptions, job string, w *watch) *dashboard {
	d := &dashboard{view: &chainView{}, detach: func() {}, cancel: func() {}, done: make(chan error, 1)}
	d.done <- nil
	live := &liveRun{job: job, view: d.view, watch: w}
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
		l, err = o.listen(ctx)
	}
	if err != nil {
		say("no dashboard: " + err.Error())
		return d
	}
	ctx, d.cancel = context.WithCancel(context.WithoutCancel(ctx))
	<-d.done
	go func() {
		d.done <- o.serve(ctx, l, web.Config{Runs: lib, Network: d.view, Room: func() (int64, bool) { return disk.Free(opt.Dir) }})
	}()
	return d
}

// close ends what is shown. Whoever looks is told that the server went.
func (d *dashboard) close() error {
	d.view.use(nil)
	d.detach()
	d.cancel()
	return <-d.done
}
