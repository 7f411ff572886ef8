package proof

import (
	"context"
	"encoding/json"
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
	"github.com/starling-network/starling/proof/verifier"
)

func checkCommand(c *terminal.Console) *cobra.Command {
	from, keys, key, secret, other := proven.Sources{}, "", "", "", others{}
	cmd := &cobra.Command{
		Use:   "check FILE --key FILE",
		Short: "Check a proof, and what it is about",
		Long: `Check a proof with the verifying key of a setup. With --base, the base model computes again what the layer
reads: only then the proof is about this base model. A buyer that has the adapter adds --adapter, --secret and --keys,
the folder of the setup with the proving key: the commitment must be to these weights. The exit code is 10 if the proof
does not hold, or is about something else.

A proof of infer has its image and its answer. With --model, --secret and --keys a party that has the network checks
that the commitment is to its weights. A proof of sum has the sums and a commitment for each update. With --committed,
the file of commit, and --keys an owner checks that its update is in the sum.

A check that was not asked for is false with -o json: {` + fields + `,"base_checked","text_follows_from_commitment",
"adapter_checked"}, or {` + otherFields + `}.`,
		Example: `  starling model proof check head.proof --key setup/verifying.key --base models/base
  starling model proof check head.proof --keys setup --base models/base --adapter bought --secret bought.secret`,
		Args: usage.Exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if other.asked() && (keys == "" || other.model != "" && secret == "") {
				return usage.Error(cmd, errors.New("--keys is needed with --committed, and with --model --secret, too"))
			}
			if (key == "") == (keys == "") || from.Adapter != "" && (keys == "" || from.Base == "" || secret == "") {
				return usage.Error(cmd, errors.New("--key or --keys is needed; with --adapter, --keys, --base and --secret are"))
			}
			found, _, err := read(args[0])
			if err != nil {
				return explain(err)
			}
			if found.Adapter == nil || other.asked() {
				return other.check(cmd.Context(), c, found, key, keys, secret)
			}
			p := *found.Adapter
			var v *proof.Verifier
			switch {
			case from.Adapter != "":
				if from.Secret, err = proven.ReadSecret(secret, false); err == nil {
					v, from.Proving, err = ceremony.Keys(keys)
				}
			case keys != "":
				v, err = ceremony.Verifying(filepath.Join(keys, ceremony.FileVerifying))
			default:
				v, err = ceremony.Verifying(key)
			}
			if err != nil {
				return explain(err)
			}
			began := time.Now()
			checked, err := proven.Check(cmd.Context(), p, v, from)
			if err != nil {
				return explain(err)
			}
			shown := Checked{describe(p, v), checked.Base, checked.Drawn, checked.Weights}
			shown.Seconds = time.Since(began).Seconds()
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(shown, shown.Proof))
			}
			return c.PrintLines(lines(shown))
		},
	}
	f := cmd.Flags()
	f.StringVar(&key, "key", "", "verifying key")
	f.StringVar(&keys, "keys", "", "folder of a setup with both keys")
	f.StringVar(&from.Base, "base", "", "folder of the base model")
	f.StringVar(&from.Adapter, "adapter", "", "folder of the adapter")
	f.StringVar(&secret, "secret", "", "file of the secret of the maker")
	f.StringVar(&other.model, "model", "", "folder of the network of an answer")
	f.StringVar(&other.committed, "committed", "", "update of a sum, as commit wrote it")
	usage.ThreadsFlag(cmd, &from.Threads)
	return cmd
}

// Verified is a proof of any kind for programs.
type Verified struct {
	Proof       string    `json:"proof"` // digest
	Kind        string    `json:"kind"`
	Key         string    `json:"key"` // digest
	Subject     string    `json:"subject"`
	Setup       uint32    `json:"setup_contributions"`
	Commitments []string  `json:"commitments"`
	Files       string    `json:"files"`           // digest of the description of those of the model or adapter
	Owner       string    `json:"owner,omitempty"` // account for which it was made; absent: none
	Bytes       int       `json:"proof_bytes"`
	Class       *int      `json:"class,omitempty"`  // of an answer, from 0
	Scores      []float64 `json:"scores,omitempty"` // of the classes
	Part        string    `json:"part,omitempty"`   // layer of an adapter, or of a sum
	Sums        []int64   `json:"sums,omitempty"`
	Compared    bool      `json:"compared"` // with the model or the update
}

const otherFields = `"proof","kind","key","subject","setup_contributions","commitments":[],"files","owner",
"proof_bytes","class","scores":[],"part","sums":[],"compared"`

func verified(p verifier.Proof, k verifier.Key) Verified {
	c := p.Claim()
	out := Verified{Proof: c.Digest.String(), Kind: string(c.Kind), Key: k.Digest.String(), Subject: k.Subject,
		Setup: k.Contributions, Files: c.Files.String(), Owner: c.Owner, Bytes: p.Parts(), Part: c.Part}
	for _, one := range c.Commitments {
		out.Commitments = append(out.Commitments, fmt.Sprintf("%x", one))
	}
	if p.Inference != nil {
		s := p.Inference.Statement
		best := s.Best()
		out.Class, out.Scores = &best, s.Scores()
	}
	if p.Aggregation != nil {
		for i := range int(p.Aggregation.Statement.Shape.Length) {
			out.Sums = append(out.Sums, p.Aggregation.Statement.Sum(i))
		}
	}
	return out
}

// others are what proofs about others than adapters are compared with.
type others struct{ model, committed string }

func (o others) asked() bool { return o.model != "" || o.committed != "" }

// check checks a proof about a network or a sum.
func (o others) check(ctx context.Context, c *terminal.Console, p verifier.Proof, key, keys, secret string) error {
	if keys != "" {
		key = filepath.Join(keys, ceremony.FileVerifying)
	}
	k, err := ceremony.VerifyingOf(key)
	if err == nil {
		err = k.Verify(p)
	}
	if err == nil && o.asked() {
		err = o.compare(ctx, p, keys, secret)
	}
	if err != nil {
		return explain(err)
	}
	shown := verified(p, k)
	shown.Compared = o.asked()
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.One(shown, shown.Proof))
	}
	return c.PrintLines(shown.lines())
}

func (o others) compare(ctx context.Context, p verifier.Proof, keys, secret string) error {
	switch {
	case p.Inference != nil && o.model != "" && o.committed == "":
		hidden, err := proven.ReadSecret(secret, false)
		if err != nil {
			return err
		}
		n, err := proven.OpenNetwork(o.model)
		if err != nil {
			return err
		}
		v, pk, err := ceremony.InferenceKeys(keys)
		if err != nil {
			return err
		}
		return n.Committed(ctx, *p.Inference, v, pk, hidden)
	case p.Aggregation != nil && o.committed != "" && o.model == "":
		u, err := proven.ReadUpdate(o.committed)
		if err != nil {
			return err
		}
		v, pk, err := ceremony.AggregationKeys(keys)
		if err != nil {
			return err
		}
		return u.Added(*p.Aggregation, v, pk)
	}
	return fmt.Errorf("%w: it is about an %s", proven.ErrOther, p.Claim().Kind)
}

// lines are the result of a check for people.
func (v Verified) lines() []string {
	list := []string{fmt.Sprintf("the proof holds for %s", v.Subject)}
	if v.Class != nil {
		list = append(list, fmt.Sprintf("class %d has the highest score, %.4g", *v.Class, v.Scores[*v.Class]))
	} else {
		list = append(list, fmt.Sprintf("%d sums of %s under %d commitments", len(v.Sums), terminal.Printable(v.Part),
			len(v.Commitments)))
	}
	list = append(list, fmt.Sprintf("key: %s, %s, as its maker claims", v.Key[:12],
		terminal.Counted(int(v.Setup), "contribution")), "files: "+v.Files)
	if v.Owner == "" {
		list = append(list, "made for: no account, so each party can show it")
	} else {
		list = append(list, "made for: "+terminal.Printable(v.Owner))
	}
	switch {
	case v.Compared && v.Class != nil:
		return append(list, "weights: the commitment is to these")
	case v.Compared:
		return append(list, "update: a commitment is to it")
	case v.Class != nil:
		return append(list, "weights: not checked, --model with --secret checks them")
	}
	return append(list, "updates: not checked, --committed checks one")
}

func exportCommand(c *terminal.Console) *cobra.Command {
	var key, to string
	cmd := &cobra.Command{
		Use:   "export FILE --key FILE --to DIR",
		Short: "Write a proof for snarkjs",
		Long: `Check a proof, and write verification_key.json, proof.json and public.json, as snarkjs groth16 verify reads
them. The verification key is that of one adapter, network or set of updates: the commitment to them is a part of it,
and this command has checked that the maker of the proof knows numbers under it. snarkjs does not check that again:
files that another party wrote prove nothing.

With -o json: {"folder",` + otherFields + `}.`,
		Example: `  starling model proof export head.proof --key setup/verifying.key --to snarkjs`,
		Args:    usage.Exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if key == "" || to == "" {
				return usage.Error(cmd, errors.New("--key and --to are needed"))
			}
			p, _, err := read(args[0])
			if err != nil {
				return explain(err)
			}
			v, err := ceremony.VerifyingOf(key)
			if err != nil {
				return explain(err)
			}
			f, err := v.Export(p)
			if err != nil {
				return explain(err)
			}
			if err := os.MkdirAll(to, 0o755); err != nil {
				return explain(err)
			}
			for name, part := range map[string]any{"verification_key.json": f.Key, "proof.json": f.Proof,
				"public.json": f.Public} {
				text, err := json.MarshalIndent(part, "", " ")
				if err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(to, name), append(text, '\n'), 0o644); err != nil {
					return explain(err)
				}
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(struct {
					Folder string `json:"folder"`
					Verified
				}{to, verified(p, v)}, to))
			}
			_, err = fmt.Printf("snarkjs groth16 verify %[1]s/verification_key.json %[1]s/public.json %[1]s/proof.json\n", to)
			return err
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "verifying key")
	cmd.Flags().StringVar(&to, "to", "", "folder for the files")
	return cmd
}
