package proof

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/proof"
	"github.com/starling-network/starling/proof/aggregation"
	"github.com/starling-network/starling/proof/ceremony"
	"github.com/starling-network/starling/proof/inference"
)

// State of a setup for programs.
type State struct {
	Folder        string `json:"folder"`
	Phase         int    `json:"phase"` // 1 or 2; 3: the keys are made
	Powers        int    `json:"phase1_contributions"`
	Circuit       int    `json:"phase2_contributions"`
	Transcript    string `json:"transcript"`             // digest
	Contribution  string `json:"contribution,omitempty"` // digest of the one that was added
	Key           string `json:"key,omitempty"`          // digest of the verifying key
	Contributions int    `json:"setup_contributions"`
}

const stateFields = `{"folder","phase","phase1_contributions","phase2_contributions","transcript","contribution","key",
"setup_contributions"}`

func stateOf(dir string, s *ceremony.Setup) State {
	return State{Folder: dir, Phase: s.Phase() + 1, Powers: len(s.Phases[0].Contributions),
		Circuit: len(s.Phases[1].Contributions), Transcript: s.Transcript().String(), Contributions: s.Contributions()}
}

// show prints the state of a setup, with a sentence for people.
func show(c *terminal.Console, st State, text string) error {
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.One(st, st.Folder))
	}
	_, err := fmt.Println(text)
	return err
}

func startCommand(c *terminal.Console) *cobra.Command {
	var shape shapes
	alone := false
	cmd := &cobra.Command{
		Use:   "start DIR {--rank N --in N --out N | --widths N,N,... | --updates N --length N | --leaves N}",
		Short: "Begin a setup for adapters, networks or sums of one shape, or for sales",
		Long: `Begin a setup in a folder, for the adapters of layers with --in inputs and --out outputs: starling model proof
layers prints them. With --widths it is for answers of networks (starling model proof infer), of which these are the
numbers of inputs, of the values of each hidden layer, and of classes. With --updates it is for sums of that many
updates (starling model proof sum) of --length elements with the weight. With --leaves it is for sales (starling model
sell --proof), of which the proofs open that many leaves of 4,096 bytes; 256 are one MiB. The next
commands are contribute by each party, seal, contribute again, and seal.

With --alone this process does it all, and is the only contributor: for trying out, and for proofs of which the maker of
the keys is the one that has to be convinced. Each other party that accepts such a proof trusts the maker of the keys.

With -o json: ` + stateFields + `.`,
		Example: `  starling model proof setup start setup --rank 16 --in 768 --out 768
  starling model proof setup start setup-of-digits --widths 784,128,10
  starling model proof setup start setup-of-sums --updates 8 --length 4097
  starling model proof setup start setup-of-sales --leaves 256
  starling model proof setup start setup --rank 16 --in 768 --out 768 --alone`,
		Args: usage.Exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := shape.begin(args[0], c.Say)
			if err != nil {
				return explain(err)
			}
			if !alone {
				return show(c, stateOf(args[0], s), args[0]+" waits for contributions to phase 1")
			}
			if err := alonely(cmd.Context(), s); err != nil {
				return explain(err)
			}
			return keysMade(c, args[0], s)
		},
	}
	f := cmd.Flags()
	f.Uint32Var(&shape.adapter.Rank, "rank", 0, "rank of the adapter")
	f.Uint32Var(&shape.adapter.In, "in", 0, "inputs of the layer")
	f.Uint32Var(&shape.adapter.Out, "out", 0, "outputs of the layer")
	f.UintSliceVar(&shape.widths, "widths", nil, "inputs, values of each hidden layer, and classes of a network")
	f.Uint32Var(&shape.sum.Updates, "updates", 0, "updates of a sum")
	f.Uint32Var(&shape.sum.Length, "length", 0, "elements of each update, with its weight")
	f.IntVar(&shape.leaves, "leaves", 0, "leaves that a proof of a sale opens (default: the setup is for adapters)")
	f.BoolVar(&alone, "alone", false, "be the only contributor, and make the keys")
	cmd.MarkFlagsMutuallyExclusive("leaves", "rank", "widths", "updates")
	cmd.MarkFlagsRequiredTogether("updates", "length")
	return cmd
}

// shapes are those that a setup may be for: one of them.
type shapes struct {
	adapter proof.Shape
	widths  []uint
	sum     aggregation.Shape
	leaves  int
}

func (s shapes) begin(dir string, say func(string)) (*ceremony.Setup, error) {
	switch {
	case s.leaves != 0:
		return ceremony.StartOpening(dir, s.leaves, say)
	case s.widths != nil:
		n := inference.Shape{}
		for _, w := range s.widths {
			n.Widths = append(n.Widths, uint32(min(w, math.MaxUint32)))
		}
		return ceremony.StartInference(dir, n, say)
	case s.sum.Updates != 0:
		return ceremony.StartAggregation(dir, s.sum, say)
	}
	return ceremony.Start(dir, s.adapter, say)
}

// alonely plays a whole setup with one contributor.
func alonely(ctx context.Context, s *ceremony.Setup) error {
	for range s.Phases {
		d, err := s.Contribute(ctx)
		if err != nil {
			return err
		}
		if err := s.Seal(ctx, d.String()); err != nil { // no beacon protects from the only contributor
			return err
		}
	}
	return nil
}

// keysMade prints the key of a setup whose phases are sealed.
func keysMade(c *terminal.Console, dir string, s *ceremony.Setup) error {
	key, err := s.Key()
	if err != nil {
		return explain(err)
	}
	st := stateOf(dir, s)
	st.Key = key.String()
	return show(c, st, fmt.Sprintf("%s has the keys for %s, of %s: %s", dir, s.Subject(),
		terminal.Counted(st.Contributions, "contribution"), st.Key))
}

func contributeCommand(c *terminal.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "contribute DIR",
		Short: "Contribute randomness to the open phase of a setup",
		Long: `Check the contributions of a setup up to now, and add one with randomness of this machine, which is forgotten
when the command ends. Keep the digest that it prints: starling model proof setup verify lists it, and without it in the
list your contribution is not in the keys. With -o json: ` + stateFields + `.`,
		Example: `  starling model proof setup contribute setup`,
		Args:    usage.Exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := ceremony.Open(args[0], c.Say)
			if err != nil {
				return explain(err)
			}
			d, err := s.Contribute(cmd.Context())
			if err != nil {
				return explain(err)
			}
			st := stateOf(args[0], s)
			st.Contribution = d.String()
			return show(c, st, fmt.Sprintf("contribution %s to phase %d", d, st.Phase))
		},
	}
}

func sealCommand(c *terminal.Console) *cobra.Command {
	var beacon string
	cmd := &cobra.Command{
		Use:   "seal DIR --beacon TEXT",
		Short: "End a phase of a setup with a public beacon",
		Long: `End the open phase of a setup. --beacon is a public random value that no contributor could foresee, such as the
hash of a block of a public chain, of a height that was agreed on before the last contribution. After the second phase
the keys are in proving.key and verifying.key. With -o json: ` + stateFields + `.`,
		Example: `  starling model proof setup seal setup --beacon 00000000000000000001a2f3`,
		Args:    usage.Exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if beacon == "" {
				return usage.Error(cmd, errors.New("--beacon is needed"))
			}
			s, err := ceremony.Open(args[0], c.Say)
			if err != nil {
				return explain(err)
			}
			if err := s.Seal(cmd.Context(), beacon); err != nil {
				return explain(err)
			}
			if s.Phase() < len(s.Phases) {
				return show(c, stateOf(args[0], s), args[0]+" waits for contributions to phase 2")
			}
			return keysMade(c, args[0], s)
		},
	}
	cmd.Flags().StringVar(&beacon, "beacon", "", "public random value")
	return cmd
}

func verifyCommand(c *terminal.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "verify DIR",
		Short: "Verify the contributions of a setup, and its keys",
		Long: `Verify every contribution of a sealed setup, and compute the keys from them again. It lists the digests of the
contributions. The exit code is 10 if one of them does not hold, or a key is another. With -o json: ` + stateFields + `,
and {"contributions":[[DIGEST],[DIGEST]]}, those of each phase.`,
		Example: `  starling model proof setup verify setup`,
		Args:    usage.Exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := ceremony.Open(args[0], c.Say)
			if err != nil {
				return explain(err)
			}
			key, err := s.Check(cmd.Context())
			if err != nil {
				return explain(err)
			}
			all := struct {
				State
				List [2][]string `json:"contributions"`
			}{State: stateOf(args[0], s)}
			all.Key = key.String()
			printed := []string{fmt.Sprintf("the keys for %s are those of the contributions: %s", s.Subject(), key)}
			for i, p := range s.Phases {
				for _, d := range p.Contributions {
					all.List[i] = append(all.List[i], d.String())
					printed = append(printed, fmt.Sprintf("phase %d: %s", i+1, d))
				}
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(all, args[0]))
			}
			return c.PrintLines(printed)
		},
	}
}
