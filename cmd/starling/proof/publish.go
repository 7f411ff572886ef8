package proof

import (
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
	"github.com/starling-network/starling/proof"
	"github.com/starling-network/starling/proof/ceremony"
	"github.com/starling-network/starling/protocol/catalog"
)

const whose = "the folder of the account that owns the listing"

// registered is a verifying key for programs.
type registered struct {
	Key   string `json:"key"` // digest
	Rank  uint32 `json:"rank"`
	In    uint32 `json:"in"`
	Out   uint32 `json:"out"`
	Setup uint32 `json:"setup_contributions"`
}

func ofKey(v *proof.Verifier) registered {
	s := v.Key().Shape
	return registered{v.Digest().String(), s.Rank, s.In, s.Out, v.Key().Contributions}
}

func registerCommand(c *terminal.Console) *cobra.Command {
	var o target.Target
	cmd := &cobra.Command{
		Use:   "register KEY --home DIR",
		Short: "Register a verifying key on a network",
		Long: `Register the verifying key of a setup on a network, which verifies proofs with it from then on. The network
checks the points of the key, and not the setup: buyers do. Any account may register any key.

With -o json: {"key","rank","in","out","setup_contributions"}.`,
		Example: `  starling model proof register setup/verifying.key --home net/consumer`,
		Args:    usage.Exactly("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := ceremony.Verifying(args[0])
			if err != nil {
				return explain(err)
			}
			data := v.Key().Encode()
			if err := o.Act(cmd, "the folder of an account that pays for the message",
				func(ctx context.Context, cl *client.Client) error {
					_, err := cl.Catalog.RegisterKey(ctx, data)
					return err
				}); err != nil {
				return err
			}
			r := ofKey(v)
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(r, r.Key))
			}
			_, err = fmt.Printf("the network verifies proofs of %s with key %s\n", v.Key().Shape, r.Key)
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
checked. With -o json: {"key","rank","in","out","setup_contributions"}.`,
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
			v, err := proof.NewVerifier(found.Key)
			if err == nil && v.Digest() != d {
				err = fmt.Errorf("%w: the network gives key %s for %s", proof.ErrKey, v.Digest(), d)
			}
			if err == nil {
				err = os.WriteFile(to, found.Key, 0o644)
			}
			if err != nil {
				return explain(err)
			}
			r := ofKey(v)
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(r, r.Key))
			}
			_, err = fmt.Printf("%s: key %s for %s, of %s, as its maker claims\n", to, r.Key, v.Key().Shape,
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
}

func shown(p catalog.Proven) Shown {
	return Shown{p.Listing, p.Parent, p.Layer, p.Rank, p.Tokens, p.Key.String(), p.Setup,
		fmt.Sprintf("%x", p.Commitment), p.Proof.String(), p.Height, p.Bound}
}

func publishCommand(c *terminal.Console) *cobra.Command {
	var o target.Target
	var listing, parent uint64
	var key string
	cmd := &cobra.Command{
		Use:   "publish FILE --listing NUMBER --parent NUMBER --key DIGEST --home DIR",
		Short: "Have a network verify a proof about a listed adapter",
		Long: `Have a network verify a proof, for a fee that depends on no more than the bytes of the proof, and
record what it says of the listing: the network runs no model, and checks neither what the layer reads nor the setup of
the key. A proof that was made with --owner, the account of the listing, is in its lineage. The files of --listing are
those of the adapter, and those of --parent, a parent of it, are those of the base model: starling model catalog add
lists both. --key is the digest of a registered verifying key.

With -o json: the proof as starling model proof list prints it.`,
		Example: `  starling model proof publish head.proof --listing 8 --parent 7 --key 3f0c --home net/consumer`,
		Args:    usage.Exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var d canon.Digest
			if err := d.UnmarshalText([]byte(key)); err != nil {
				return usage.Error(cmd, fmt.Errorf("--key %q: %w", key, err))
			}
			if listing == 0 || parent == 0 {
				return usage.Error(cmd, errors.New("--listing and --parent are needed"))
			}
			p, data, err := read(args[0])
			if err != nil {
				return explain(err)
			}
			var found catalog.Proven
			err = o.Act(cmd, whose, func(ctx context.Context, cl *client.Client) error {
				if err := cl.Catalog.Prove(ctx, listing, parent, d, data); err != nil {
					return err
				}
				all, err := cl.Catalog.Proofs(ctx, listing)
				for _, one := range all {
					if one.Proof == p.Digest() {
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
			_, err = fmt.Printf("the network verified it in block %d: listing %d, layer %s of listing %d\n", r.Height,
				r.Listing, terminal.Printable(r.Layer), r.Parent)
			return err
		},
	}
	o.Flags(cmd)
	f := cmd.Flags()
	f.Uint64Var(&listing, "listing", 0, "listing of the adapter, or of the model with it")
	f.Uint64Var(&parent, "parent", 0, "listing of the base model")
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
			`"height","bound"}]}.`,
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
		[]string{"LAYER", "PARENT", "RANK", "TOKENS", "SETUP", "BOUND", "BLOCK", "+KEY", "+COMMITMENT", "+PROOF"},
		func(s Shown) []any {
			return []any{terminal.Printable(s.Layer), s.Parent, s.Rank, s.Tokens, s.Setup, s.Bound, s.Height, s.Key,
				s.Commitment, s.Proof}
		})
	cmd.Flags().Uint64Var(&listing, "listing", 0, "number of the listing")
	return cmd
}
