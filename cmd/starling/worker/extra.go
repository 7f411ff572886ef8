package worker

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/starling-network/starling/cmd/starling/hosted"
	"github.com/starling-network/starling/node/provider"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/run/crew"
)

// Words of --role for work besides runs, which follow those of seats.
const (
	judges = "judge"
	hosts  = "host"
)

// hostPrefix begins the flags of a host, which are those of starling model host.
const hostPrefix = "host-"

// both is the value of --role of a process that trains in one run and verifies in another.
const both = "worker,verifier"

// roleWords are the values of --role: seats in runs, and after them work besides.
func roleWords() []string {
	seats := []string{"worker", "verifier", "generator", both}
	words := slices.Clone(seats)
	for _, seat := range seats {
		if strings.HasSuffix(seat, "verifier") { // the network draws evaluators among verifiers
			words = append(words, seat+","+judges, seat+","+judges+","+hosts)
		}
		words = append(words, seat+","+hosts)
	}
	return words
}

// besides are the flags of work besides runs.
type besides struct {
	bond    string
	private bool
	host    hosted.Offer
}

func (b *besides) flags(f *pflag.FlagSet) {
	f.StringVar(&b.bond, "judge-bond", "1", "ZEN that a judge of contests locks")
	f.BoolVar(&b.private, "judge-private", false, "a judge also gets files from private addresses, as those of a "+
		"network on this machine have")
	f.StringVar(&b.host.Folder, "host", "", "folder of the model that a host serves")
	b.host.Flags(f, hostPrefix)
}

// classOf is the class of work that a value of --role names, or an error that says which flag does not go with it. It
// sets the other work that the value names.
func classOf(role string, b *besides, o *provider.Options) (crew.Role, error) {
	seats, hosting := strings.CutSuffix(role, ","+hosts)
	seats, judging := strings.CutSuffix(seats, ","+judges)
	if o.Verifies = seats == both; o.Verifies {
		seats = crew.Worker.String()
	}
	if err := b.into(o, judging, hosting); err != nil {
		return 0, err
	}
	class := crew.ClassNamed(seats)
	generates, verifies := class == crew.Generator, class == crew.Verifier
	switch {
	case generates && o.Torch != nil:
		return 0, errors.New("answers of generators are exact: give --role generator without --executor torch")
	case generates && o.Pool != "":
		return 0, errors.New("a pool offers workers that train: give --role generator without --pool")
	case o.Verifies && o.Pool != "":
		return 0, errors.New("a pool offers workers: give --role worker with --pool")
	case !o.Verifies && o.Checks > 0:
		return 0, fmt.Errorf("--verify-price is for --role %s; --price is that of a verifier alone", both)
	case verifies && o.Torch != nil:
		return 0, errors.New("a verifier does work again with the built-in engine: --executor torch is for workers")
	case verifies && !o.Device.Processor() && !o.Device.Automatic():
		return 0, errors.New("a verifier does work again on the processor: --device is for workers")
	}
	return class, nil
}

// into sets the work besides runs.
func (b *besides) into(o *provider.Options, judging, hosting bool) (err error) {
	if judging {
		if o.Extra.Bond, err = (coin.Coin{}).Parse(b.bond); err != nil || o.Extra.Bond == 0 {
			return fmt.Errorf("--judge-bond %s is no positive amount of ZEN", b.bond)
		}
	}
	o.Extra.Private = b.private
	switch {
	case !hosting && b.host.Folder != "":
		return errors.New("--host is for a --role that ends with " + hosts + ", such as worker," + hosts)
	case !hosting:
		return nil
	case b.host.Folder == "" || b.host.Input == "" || b.host.Output == "":
		return errors.New("a host needs --host, the folder of the model, --host-price-in and --host-price-out")
	}
	if err := b.host.Reachable(hostPrefix); err != nil {
		return err
	}
	if b.host.Memory < 1 {
		return errors.New("--host-kv-memory is at least 1")
	}
	b.host.Serve.Memory = int64(b.host.Memory) << 20
	o.Extra.Host = &b.host.Options
	return nil
}
