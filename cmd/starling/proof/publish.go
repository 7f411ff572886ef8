package proof

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/proof/ceremony"
	"github.com/starling-network/starling/proof/equation"
	"github.com/starling-network/starling/proof/verifier"
	"github.com/starling-network/starling/protocol/catalog"
)

const whose = "the folder of the account that owns the listing"

// registered is a verifying key for programs. The shape is that of adapters, 0 for others.
type registered struct {
	Key     string `json:"key"` // digest
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	Rank    uint32 `json:"rank"`
	In      uint32 `json:"in"`
	Out     uint32 `json:"out"`
	Setup   uint32 `json:"setup_contributions"`
}

const keyFields = `{"key","kind","subject","rank","in","out","setup_contributions"}`

func ofKey(k verifier.Key) registered {
	r := registered{Key: k.Digest.String(), Kind: string(k.Kind), Subject: k.Subject, Setup: k.Contributions}
	if k.Kind == verifier.Adapter {
		s := k.Shape()
		r.Rank, r.In, r.Out = s.Rank, s.In, s.Out
	}
	return r
}

func registerCommand(c *terminal.Console) *cobra.Command {
	var o target.Target
	cmd := &cobra.Command{
		Use:   "register KEY --home DIR",
		Short: "Register a verifying key on a network",
		Long: `Register the verifying key of a setup on a network, which verifies proofs with it from then on. The network
checks the points of the key, and not the setup: buyers do. Any account may register any key.

With -o json: ` + keyFields + `.`,
		Example: `  starling model proof register setup/verifying.key --home net/consumer`,
		Args:    usage.Exactly("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := ceremony.VerifyingOf(args[0])
			if err != nil {
				return explain(err)
			}
			if err := o.Act(cmd, "the folder of an account that pays for the message",
				func(ctx context.Context, cl *client.Client) error {
					_, err := cl.Catalog.RegisterKey(ctx, k.Bytes)
					return err
				}); err != nil {
				return err
			}
			r := ofKey(k)
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(r, r.Key))
			}
			_, err = fmt.Printf("the network verifies proofs of %s with key %s\n", r.Subject, r.Key)
			return err
		},
	}
	o.Flags(cmd)
	return cmd
}

func keyCommand(c *terminal.Console) *cobra.Command {
	var network, to string
	cmd := &cobra.Command{
		Use:   "key DIGEST --network URL --to FILE",
		Short: "Get a registered verifying key from a network",
		Long: `Write a verifying key that is registered on a network into a file, to check proofs with it here. Its digest is
checked. With -o json: ` + keyFields + `.`,
		Example: `  starling model proof key 3f0c --network http://127.0.0.1:26601 --to verifying.key`,
		Args:    usage.Exactly("DIGEST"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var d canon.Digest
			if err := d.UnmarshalText([]byte(args[0])); err != nil {
				return usage.Error(cmd, fmt.Errorf("%q: %w", args[0], err))
			}
			if to == "" {
				return usage.Error(cmd, errors.New("--to is needed"))
			}
			if err := target.WantNetwork(cmd, network); err != nil {
				return err
			}
			found, err := inspect.Query(cmd.Context(), network, func(ctx context.Context, cl *client.Client) (catalog.ProofKey,
				error) {
				return cl.Catalog.ProofKey(ctx, d)
			})
			if err != nil {
				return err
			}
			k, err := verifier.ReadKey(found.Key)
			if err == nil && k.Digest != d {
				err = fmt.Errorf("%w: the network gives key %s for %s", equation.ErrKey, k.Digest, d)
			}
			if err == nil {
				err = os.WriteFile(to, found.Key, 0o644)
			}
			if err != nil {
				return explain(err)
			}
			r := ofKey(k)
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(r, r.Key))
			}
			_, err = fmt.Printf("%s: key %s for %s, of %s, as its maker claims\n", to, r.Key, r.Subject,
				terminal.Counted(int(r.Setup), "contribution"))
			return err
		},
	}
	target.NetworkFlag(cmd, &network)
	cmd.Flags().StringVar(&to, "to", "", "file for the key")
	return cmd
}

// Shown is what a network verified, for programs.
type Shown struct {
	Listing    uint64 `json:"listing"`
	Parent     uint64 `json:"parent"`
	Layer      string `json:"layer"`
	Rank       uint32 `json:"rank"`
	Tokens     uint32 `json:"tokens"`
	Key        string `json:"key"`
	Setup      uint32 `json:"setup_contributions"`
	Commitment string `json:"commitment"`
	Proof      string `json:"proof"`
	Height     int64  `json:"height"`
	Bound      bool   `json:"bound"` // it was made for the owner of the listing
	Kind       string `json:"kind"`
	// of the updates of a sum, in place of commitment
	Commitments []string `json:"commitments,omitempty"`
}

func shown(p catalog.Proven) Shown {
	s := Shown{p.Listing, p.Parent, p.Layer, p.Rank, p.Tokens, p.Key.String(), p.Setup,
		fmt.Sprintf("%x", p.Commitment), p.Proof.String(), p.Height, p.Bound,
		string(cmp.Or(p.Kind, verifier.Adapter)), nil}
	for _, one := range p.Commitments {
		s.Commitments = append(s.Commitments, fmt.Sprintf("%x", one))
	}
	return s
}

func publishCommand(c *terminal.Console) *cobra.Command {
	var o target.Target
	var listing, parent uint64
	var key string
	cmd := &cobra.Command{
		Use:   "publish FILE --listing NUMBER --parent NUMBER --key DIGEST --home DIR",
		Short: "Have a network verify a proof about a listed model",
		Long: `Have a network verify a proof, for a fee that depends on no more than the bytes of the proof, and
record what it says of the listing: the network runs no model, and checks neither what the layer reads nor the setup of
the key. A proof that was made with --owner, the account of the listing, is in its lineage. The files of --listing are
those of the adapter, and those of --parent, a parent of it, are those of the base model: starling model catalog add
lists both. A proof of infer or sum is about the files of --listing, and has no --parent. --key is the digest of a
registered verifying key.

With -o json: the proof as starling model proof list prints it.`,
		Example: `  starling model proof publish head.proof --listing 8 --parent 7 --key 3f0c --home net/consumer`,
		Args:    usage.Exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var d canon.Digest
			if err := d.UnmarshalText([]byte(key)); err != nil {
				return usage.Error(cmd, fmt.Errorf("--key %q: %w", key, err))
			}
			p, data, err := read(args[0])
			if err != nil {
				return explain(err)
			}
			if listing == 0 || (parent == 0) != (p.Adapter == nil) {
				return usage.Error(cmd, errors.New("--listing is needed, and of a proof about an adapter --parent, too"))
			}
			var found catalog.Proven
			err = o.Act(cmd, whose, func(ctx context.Context, cl *client.Client) error {
				if err := cl.Catalog.Prove(ctx, listing, parent, d, data); err != nil {
					return err
				}
				all, err := cl.Catalog.Proofs(ctx, listing)
				for _, one := range all {
					if one.Proof == p.Claim().Digest {
						found = one
					}
				}
				return err
			})
			if err != nil {
				return err
			}
			r := shown(found)
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(r, r.Proof))
			}
			if r.Parent == 0 {
				_, err = fmt.Printf("the network verified it in block %d: an %s of listing %d\n", r.Height, r.Kind, r.Listing)
			} else {
				_, err = fmt.Printf("the network verified it in block %d: listing %d, layer %s of listing %d\n", r.Height,
					r.Listing, terminal.Printable(r.Layer), r.Parent)
			}
			return err
		},
	}
	o.Flags(cmd)
	f := cmd.Flags()
	f.Uint64Var(&listing, "listing", 0, "listing of the adapter, or of the model")
	f.Uint64Var(&parent, "parent", 0, "listing of the base model of an adapter")
	f.StringVar(&key, "key", "", "digest of the verifying key")
	return cmd
}

func listCommand(c *terminal.Console) *cobra.Command {
	var listing uint64
	cmd := target.ListCommand(c, "list --listing NUMBER", "List what a network verified about a listing",
		`List the proofs that a network verified about a listing, with the number of contributions to the setup of each key,
as the maker of the key claims: a setup of one party can forge proofs, also if its key claims more. BOUND says that the
proof was made for the owner of the listing; others may be copies of a proof of another account.

With -o json: {"proofs":[{"listing","parent","layer","rank","tokens","key","setup_contributions","commitment","proof",`+
			`"height","bound","kind","commitments":[]}]}.`,
		`  starling model proof list --listing 8 --network http://127.0.0.1:26601`, "proofs",
		func(ctx context.Context, t *target.Target) ([]Shown, error) {
			return inspect.Query(ctx, t.Network, func(ctx context.Context, cl *client.Client) ([]Shown, error) {
				if _, err := cl.Catalog.Listing(ctx, listing); err != nil {
					return nil, err
				}
				all, err := cl.Catalog.Proofs(ctx, listing)
				list := []Shown{}
				for _, p := range all {
					list = append(list, shown(p))
				}
				return list, err
			})
		},
		func(s Shown) string { return s.Proof },
		[]string{"KIND", "LAYER", "PARENT", "RANK", "TOKENS", "SETUP", "BOUND", "BLOCK", "+KEY", "+COMMITMENT", "+PROOF"},
		func(s Shown) []any {
			return []any{s.Kind, terminal.Printable(s.Layer), s.Parent, s.Rank, s.Tokens, s.Setup, s.Bound, s.Height, s.Key,
				s.Commitment, s.Proof}
		})
	cmd.Flags().Uint64Var(&listing, "listing", 0, "number of the listing")
	return cmd
}
