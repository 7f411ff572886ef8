package arena

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	module "github.com/starling-network/starling/client/module/arena"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	nodearena "github.com/starling-network/starling/node/arena"
	"github.com/starling-network/starling/protocol/arena"
)

// revealing is what a host or an entrant publishes.
type revealing struct {
	target.Target
	listen, url string
	set         string // path; "": not the host
	entrants    []*nodearena.Entrant
}

func revealCommand(c *terminal.Console) *cobra.Command {
	var o revealing
	cmd := &cobra.Command{
		Use:   "reveal CONTEST --home DIR",
		Short: "Publish the hidden set or the models of an account, until the contest is over",
		Long: `Publish what the account committed to: the host its hidden set, an entrant its models. The command waits
for the phase of revealing, which begins after the last entry. Then the files are served at --listen, and the network
gets their URL. It ends when the contest is over, and shows the places. Run the same command again after an
interruption: evaluators get the files until they have reported. An entry that is not revealed loses its deposit, and
a host its bond.

--url is where evaluators reach --listen, such as http://203.0.113.8:7500.

With -o json: the contest, as starling market arena show prints it.`,
		Example: `  starling market arena reveal 3 --home net/worker --listen 0.0.0.0:7500 --url http://203.0.113.8:7500`,
		Args:    usage.Exactly("CONTEST"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := wantContest(cmd, args[0])
			if err != nil {
				return err
			}
			switch {
			case o.Home == "":
				return usage.Error(cmd, errors.New("--home is needed: the folder of the host or of an entrant"))
			case !arena.URL(o.url):
				return usage.Error(cmd, fmt.Errorf("--url %s: it begins with http:// or https://", o.url))
			}
			if err := terminal.CheckListen("--listen", o.listen, "127.0.0.1:7500"); err != nil {
				return err
			}
			return explain(o.reveal(cmd, c, id))
		},
	}
	o.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:7500", "host:port at which the files are served")
	f.StringVar(&o.url, "url", "", "where evaluators get them (default: http:// and the address of --listen)")
	return cmd
}

func (o *revealing) reveal(cmd *cobra.Command, c *terminal.Console, id uint64) error {
	var v Shown
	err := o.Act(cmd, "the folder of the host or of an entrant", func(ctx context.Context, cl *client.Client) error {
		s, err := cl.Arena.Contest(ctx, id)
		if err != nil {
			return err
		}
		if err := o.find(cl, s); err != nil {
			return err
		}
		if s.Open() {
			if err := o.serve(ctx, c, cl, id); err != nil {
				return err
			}
		}
		v, err = ask(ctx, cl, id)
		return err
	})
	if err != nil {
		return terminal.IfInterrupted(cmd.Context(), err, "run the same command again: what is published must stay "+
			"there until the contest is over")
	}
	return show(c, v)
}

// find finds what the account committed to.
func (o *revealing) find(cl *client.Client, s module.Standing) (err error) {
	if s.Host == cl.Address() {
		if o.set, err = nodearena.SetOf(dirs(o.Home, "sets"), s.Terms.Set); err != nil || o.set != "" {
			return err
		}
		return &nodearena.Error{Code: nodearena.Unknown, What: fmt.Sprintf("%s does not have the hidden set of contest %d",
			o.Home, s.ID), Fix: "give the folder that the contest was created with: the set is in its arena/sets"}
	}
	o.entrants, err = nodearena.Entrants(dirs(o.Home, "entries", fmt.Sprint(s.ID)))
	if err == nil && len(o.entrants) == 0 {
		err = &nodearena.Error{Code: nodearena.Unknown, What: fmt.Sprintf("%s has no entry in contest %d", o.Home, s.ID),
			Fix: "give the folder that entered: starling market arena enter"}
	}
	return err
}

// serve serves the files until the contest is over, and reveals them in its phase.
func (o *revealing) serve(ctx context.Context, c *terminal.Console, cl *client.Client, id uint64) error {
	mux := http.NewServeMux()
	if o.set != "" {
		nodearena.ServeSet(mux, o.set)
	}
	for _, e := range o.entrants {
		e.Serve(mux, "/"+path(e)+"/")
	}
	l, err := terminal.Listen(ctx, o.listen)
	if err != nil {
		return err
	}
	var public atomic.Bool // not before the last entry: until then the set and the models are secret
	gate := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !public.Load() {
			http.NotFound(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
	defer terminal.Serve(l, gate)()
	url := cmp.Or(o.url, "http://"+l.Addr().String())
	next, err := client.Heights(ctx, cl)
	if err != nil {
		return err
	}
	c.Note(fmt.Sprintf("contest %d: the files are served at %s", id, url))
	for last := arena.Phase(""); ; {
		s, err := cl.Arena.Contest(ctx, id)
		if err != nil {
			return err
		}
		if s.Phase != last {
			c.Note(fmt.Sprintf("contest %d is %s until block %d", id, s.Phase, s.Until))
			last = s.Phase
		}
		if !s.Open() {
			return nil
		}
		public.Store(s.Phase != arena.Entering)
		if s.Phase == arena.Revealing {
			if err := o.publish(ctx, cl, s, url); err != nil {
				return err
			}
		}
		if _, err := next(ctx); err != nil {
			return err
		}
	}
}

// path of the files of an entry on the server.
func path(e *nodearena.Entrant) string {
	model, _ := e.Model()
	return model.Short()
}

// publish reveals what the network does not know yet.
func (o *revealing) publish(ctx context.Context, cl *client.Client, s module.Standing, url string) error {
	if o.set != "" && s.SetURL == "" {
		return cl.Arena.RevealSet(ctx, s.ID, url)
	}
	for _, e := range o.entrants {
		model, salt := e.Model()
		commitment := arena.Commitment(s.ID, cl.Address(), model, salt)
		for _, entry := range s.All {
			if entry.Commitment != commitment || !entry.Model.IsZero() {
				continue
			}
			if err := cl.Arena.RevealEntry(ctx, s.ID, entry.Number, model, salt, url+"/"+path(e)); err != nil {
				return err
			}
		}
	}
	return nil
}
