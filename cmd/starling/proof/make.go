package proof

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/proven"
	"github.com/starling-network/starling/proof"
	"github.com/starling-network/starling/proof/ceremony"
)

// Made is a proof for programs.
type Made struct {
	File       string  `json:"file,omitempty"`
	Proof      string  `json:"proof"` // digest
	Key        string  `json:"key"`   // digest
	Setup      uint32  `json:"setup_contributions"`
	Layer      string  `json:"layer"`
	Weights    int     `json:"weights"`
	Tokens     int     `json:"tokens"`
	Commitment string  `json:"commitment"`
	Base       string  `json:"base"`            // digest of the description of its files
	Adapter    string  `json:"adapter"`         // digest of the description of its files
	Owner      string  `json:"owner,omitempty"` // account for which it was made; absent: none
	Bytes      int     `json:"proof_bytes"`
	Largest    float64 `json:"largest"`  // magnitude of the outputs of the adapter
	Rounding   float64 `json:"rounding"` // bound of the difference that the rounding to integers makes
	Seconds    float64 `json:"seconds"`
}

func describe(p proof.Proof, v *proof.Verifier) Made {
	s := p.Statement
	return Made{Proof: p.Digest().String(), Key: v.Digest().String(), Setup: v.Key().Contributions, Layer: s.Module,
		Weights: s.Shape.Weights(), Tokens: len(s.Tokens), Commitment: fmt.Sprintf("%x", p.Commitment),
		Base: s.Base.String(), Adapter: s.Adapter.String(), Owner: s.Owner, Bytes: len(p.Points) + len(p.Commitment),
		Largest: s.Largest(), Rounding: s.Rounding()}
}

const fields = `"proof","key","setup_contributions","layer","weights","tokens","commitment","base","adapter","owner",
"proof_bytes","largest","rounding","seconds"`

func makeCommand(c *terminal.Console) *cobra.Command {
	o, keys, secret, to := proven.Options{}, "", "", ""
	cmd := &cobra.Command{
		Use:   "make ADAPTER --base MODEL --layer NAME --keys SETUP --to FILE",
		Short: "Prove what an adapter adds to a layer of its base model",
		Long: `Prove what the adapter of one layer adds to the layer of its base model on a text, without showing the weights.
ADAPTER is a folder with adapter_config.json and adapter_model.safetensors, or one that holds them in adapter, such as
the output folder of a fine-tuning. --keys is the folder of a setup for the shape of the layer.

The text is --text, or tokens that follow from the commitment to the weights: without --tokens as many as it takes that
the maker cannot choose the text by trying secrets: 64 bits over the logarithm of vocabulary / rank. check takes no
shorter text for one that was not chosen. Each token shows what the adapter adds at that token. All proofs about a layer
count together: of as many tokens as the rank of the adapter the space in which it adds can be computed, and of as many
as the layer has inputs all that it adds.

--owner is the account that will publish the proof: no other can. Without it, each account that has the proof and lists
the same files shows it as its own, and lineages do not count it.

--secret is the file of the random number that hides the weights; it is made if it is not there. Proofs with one secret
have one commitment. Give it to a buyer with the weights, who checks them against the commitment, and to no other
party: with the secret, guesses of the weights can be checked.

With -o json: {"file",` + fields + `}.`,
		Example: `  starling model proof make out/tuned --base base --layer lm_head --keys setup --to head.proof`,
		Args:    usage.Exactly("ADAPTER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Adapter = args[0]
			switch {
			case o.Base == "" || o.Layer == "" || keys == "" || to == "":
				return usage.Error(cmd, errors.New("--base, --layer, --keys and --to are needed"))
			case o.Tokens < 0 || o.Tokens > proof.MaxTokens:
				return usage.Error(cmd, fmt.Errorf("--tokens must be 1 to %d", proof.MaxTokens))
			}
			if secret == "" {
				secret = filepath.Clean(o.Adapter) + ".secret"
			}
			hidden, err := proven.ReadSecret(secret, true)
			if err != nil {
				return explain(err)
			}
			v, pk, err := ceremony.Keys(keys)
			if err != nil {
				return explain(err)
			}
			began := time.Now()
			made, err := proven.Make(cmd.Context(), o, v, pk, hidden, c.Say)
			if err != nil {
				return explain(err)
			}
			shown := describe(made, v)
			shown.File, shown.Seconds = to, time.Since(began).Seconds()
			if err := os.WriteFile(to, made.Encode(), 0o644); err != nil {
				return explain(err)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(shown, shown.Proof))
			}
			_, err = fmt.Printf("%s: %d weights of %s, %d tokens, a proof of %d bytes; the secret is in %s\n", to,
				shown.Weights, shown.Layer, shown.Tokens, shown.Bytes, secret)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Base, "base", "", "folder of the base model")
	f.StringVar(&o.Layer, "layer", "", "layer: starling model proof layers lists them")
	f.StringVar(&keys, "keys", "", "folder of a setup whose phases are sealed")
	f.StringVar(&to, "to", "", "file of the proof")
	f.StringVar(&secret, "secret", "", "file of the secret (default: ADAPTER.secret)")
	f.StringVar(&o.Text, "text", "", "text of the proof (default: tokens that follow from the commitment)")
	f.IntVar(&o.Tokens, "tokens", 0, "tokens of the proof, without --text (default: too many to choose)")
	f.StringVar(&o.Owner, "owner", "", "account that publishes the proof")
	usage.ThreadsFlag(cmd, &o.Threads)
	return cmd
}

// Checked is the result of a check for programs.
type Checked struct {
	Made
	BaseChecked    bool `json:"base_checked"`
	DrawnText      bool `json:"text_follows_from_commitment"`
	AdapterChecked bool `json:"adapter_checked"`
}

// lines are the result of a check for people.
func lines(k Checked) []string {
	said := func(checked bool, yes, no string) string {
		if checked {
			return yes
		}
		return no
	}
	return []string{
		fmt.Sprintf("the proof holds: %d weights of %s on %d tokens", k.Weights, k.Layer, k.Tokens),
		fmt.Sprintf("key: %s, %s, as its maker claims", k.Key[:12], terminal.Counted(int(k.Setup), "contribution")),
		fmt.Sprintf("the adapter adds at most %.4g, with rounding of at most %.2g", k.Largest, k.Rounding),
		said(k.BaseChecked, "base model: these files read these inputs", "base model: not checked, --base checks it"),
		said(k.DrawnText, "text: follows from the commitment",
			"text: chosen by the maker, of too few tokens, or not checked"),
		said(k.Owner != "", "made for: "+terminal.Printable(k.Owner), "made for: no account, so each party can show it"),
		said(k.AdapterChecked, "adapter: the commitment is to these weights",
			"adapter: not checked, --adapter with --secret checks it"),
	}
}
