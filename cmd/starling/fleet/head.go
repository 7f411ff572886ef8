package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/endpoint"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/fleet"
	"github.com/starling-network/starling/node/fleet/head"
	"github.com/starling-network/starling/node/provider/peers"
)

// headOptions are the flags of starling fleet head.
type headOptions struct {
	home, network, listen, invitations string
	machines                           int
	private                            bool
}

func headCommand(c *terminal.Console) *cobra.Command {
	var o headOptions
	cmd := &cobra.Command{
		Use:   "head --home DIR --network URL --listen ADDRESS [--invitations DIR]",
		Short: "Be the way to a network for machines of a local network",
		Long: `Let machines that reach this host alone take part in a network. For each of --machines a ticket is written to
tickets/ below --home: copy machine-1 to the first machine, and start it with starling worker up --head machine-1. With
--invitations, the folder that starling fleet add --out wrote, the head gives the machine with ticket machine-N the
invitation of that name: it makes its own key, joins the fleet, and needs nothing from the network itself. Without an
invitation it joins for itself.

A machine without a ticket gets no answer. The connection is TLS with the keys of the ticket, so that no other machine
of the local network reads it or answers in place of the head. Delete the file of a ticket, and the head ends the
connections of that machine within two seconds and lets it in no more; starling fleet revoke ends the rights of the
machine's key. A file that cannot be read is reported and lets no machine in, and changes nothing for the others. A head
that starts makes each missing ticket again, with another key. Each machine has at most 256 connections through the head
at a time, from all its addresses together; of 64 connections of one address without the proof of a ticket, the oldest
gives way to the next.

The head passes questions and transactions to the validators of --network, and connections to addresses over TCP at
which participants are registered: to no loopback, and to addresses of private networks only with --private. Others
reach the machines through relays, which are participants with --relay. The first Ctrl-C ends it.

With -o json: {"url","tickets"}: the folder of the tickets.`,
		Example: `  starling fleet head --home head --network http://203.0.113.7:26601 --listen 10.0.0.1:7600 --machines 2 \
    --invitations invitations
  starling worker up --home gpu-0 --head machine-1`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.home == "" || o.network == "" || o.listen == "" {
				return usage.Error(cmd, errors.New("--home, --network and --listen are needed"))
			}
			if o.machines < 1 || o.machines > 64 {
				return usage.Error(cmd, errors.New("--machines is at least 1 and at most 64"))
			}
			at, err := netip.ParseAddrPort(o.listen)
			if err != nil || at.Addr().IsUnspecified() || at.Port() == 0 {
				return usage.Error(cmd, fmt.Errorf("--listen %s: the tickets name it, so give the address of this host on the "+
					"local network and a port, such as 10.0.0.1:7600", o.listen))
			}
			return serveHead(cmd.Context(), c, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.home, "home", "", "folder of the key of the head and of the tickets")
	f.StringVar(&o.network, "network", "", "HTTP interface of a validator, or of several, separated by commas: the next "+
		"is asked when one is gone")
	f.StringVar(&o.listen, "listen", "", "address and port of this host on the local network, which the tickets name")
	f.StringVar(&o.invitations, "invitations", "", "folder of invitations that the head gives to machines, by their names")
	f.IntVar(&o.machines, "machines", 1, "tickets to have, for as many machines")
	f.BoolVar(&o.private, "private", false, "also connect machines to participants at addresses of private networks")
	return cmd
}

// rereads is the time after which a head reads its tickets again, and so finds that one was deleted.
const rereads = 2 * time.Second

// invitation reads the invitation of a ticket.
func (o headOptions) invitation(name string) (string, error) {
	if o.invitations == "" {
		return "", nil
	}
	i, err := fleet.Read(filepath.Join(o.invitations, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return i.String(), err
}

func serveHead(ctx context.Context, c *terminal.Console, o headOptions) error {
	validators, err := endpoint.NewTransport(o.network)
	if err != nil {
		return cause.Explain(err)
	}
	chain, err := client.Connect(o.network, wallet.KeyFromSeed([32]byte{})) // it asks, and signs nothing
	if err != nil {
		return cause.Explain(err)
	}
	defer chain.Close()
	listener, err := terminal.Listen(ctx, o.listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	at := listener.Addr().String()
	key, members, skipped, err := head.OpenFolder(o.home, at, o.machines)
	if errors.Is(err, head.ErrMoved) {
		return terminal.WithExit(&terminal.Problem{Code: "HEAD_MOVED", Why: err.Error(),
			What: "the tickets of " + o.home + " are for a head at another address",
			Fix:  "give --listen that address, or delete the tickets: the head makes others, of which each machine needs one"},
			terminal.ExitConflict)
	}
	if err != nil {
		return err
	}
	h := &head.Head{Validators: validators, At: peers.New(chain.Registry).At, Private: o.private, Members: members,
		Invitation: o.invitation, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	l, err := h.Listener(listener, key)
	if err != nil {
		return err
	}
	url, tickets := "https://"+at, members.Dir()
	if c.Form.Machine() {
		err = c.Form.Print(os.Stdout, terminal.One(map[string]any{"url": url, "tickets": tickets}, url))
	} else {
		_, err = fmt.Printf("head  %s  with %d tickets in %s, for starling worker up --head TICKET\n", url,
			members.Count(), tickets)
	}
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(h.Log.Handler(), slog.LevelWarn)}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	go reread(ctx, members, skipped, h.Log)
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	_, sent, received := h.Traffic()
	c.Say(fmt.Sprintf("passed %s to peers and %s from them", terminal.Bytes(uint64(sent)),
		terminal.Bytes(uint64(received))))
	return nil
}

// reread reads the tickets of a head again and again, and logs each reason to skip some once.
func reread(ctx context.Context, members *head.Members, skipped error, log *slog.Logger) {
	said := ""
	for tick := time.NewTicker(rereads); ctx.Err() == nil; <-tick.C {
		if skipped != nil && skipped.Error() != said {
			log.Warn("these tickets let no machine in until they are mended or deleted", "err", skipped)
		}
		if said = ""; skipped != nil {
			said = skipped.Error()
		}
		var err error
		if skipped, err = members.Read(); err != nil {
			log.Warn("cannot read the folder of the tickets: those of before count", "err", err)
		}
	}
}
