package hosted

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/starling-network/starling/node/hosting/provider"
)

// Offer is what a provider offers, as flags give it: those of starling model host, and with a prefix those of a worker
// that hosts a model.
type Offer struct {
	provider.Options
	Memory int // MiB of keys and values
}

// Flags adds the flags, whose names begin with a prefix.
func (o *Offer) Flags(f *pflag.FlagSet, prefix string) {
	f.Uint64Var(&o.Model, prefix+"model", 0, "number of the model on the network, whose files these are (default: it is "+
		"registered)")
	f.StringVar(&o.Input, prefix+"price-in", "", "price of a million tokens of prompts, such as 0.1 or 0.1usdc")
	f.StringVar(&o.Output, prefix+"price-out", "", "price of a million tokens of answers, in the same coin")
	f.StringVar(&o.Bond, prefix+"bond", "10", "ZEN that are locked while the account hosts the model")
	f.StringVar(&o.Redeem, prefix+"redeem", "0.1", "coins for which a voucher is redeemed while its channel is open")
	f.StringVar(&o.Listen, prefix+"listen", "127.0.0.1:7500", "host:port at which requests are answered")
	f.StringVar(&o.URL, prefix+"url", "", "where clients reach it (default: http:// and --"+prefix+"listen)")
	f.IntVar(&o.Memory, prefix+"kv-memory", 1024, "MiB that the keys and values of all texts may take")
}

// Reachable returns an error if the URL is none that clients can reach.
func (o *Offer) Reachable(prefix string) error {
	if o.URL != "" && !strings.HasPrefix(o.URL, "http://") && !strings.HasPrefix(o.URL, "https://") {
		return fmt.Errorf("--%surl %s: it begins with http:// or https://", prefix, o.URL)
	}
	return nil
}
