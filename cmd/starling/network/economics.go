package network

import (
	"fmt"
	"os"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward/deterrence"
	"github.com/starling-network/starling/protocol/reward/penalty"
)

// Economics is what `starling network economics -o json` prints. Amounts are in ZEN, or in whatever unit the flags are.
type Economics struct {
	Stake                float64  `json:"stake"`
	Reward               float64  `json:"reward"`
	Cost                 float64  `json:"cost"`
	AuditRate            float64  `json:"audit_rate"`
	Steps                uint32   `json:"steps"`
	CheatFraction        float64  `json:"cheat_fraction"`
	FakedSteps           uint32   `json:"faked_steps"`
	DetectionProbability float64  `json:"detection_probability"`
	ExpectedGain         float64  `json:"expected_gain"`
	CheatingPays         bool     `json:"cheating_pays"`
	StakeNeeded          *float64 `json:"stake_needed"`
	StakeToPost          *float64 `json:"stake_to_post"`
	SeatStake            *float64 `json:"seat_stake"`
	TolerantDeposit      *float64 `json:"tolerant_deposit"`
	NetworkOverhead      float64  `json:"network_overhead"`
	AuditCost            float64  `json:"audit_cost"`
}

// EconomicsCommand is starling network economics.
func EconomicsCommand(c *terminal.Console) *cobra.Command {
	stake, pay, cost := usage.Decimal{Kind: "amount"}, usage.Decimal{Kind: "amount"}, usage.Decimal{Kind: "amount"}
	rate, cheat := usage.Decimal{Kind: "rate"}, usage.Decimal{Millionths: millionth, Kind: "fraction"}
	var steps uint32
	cmd := &cobra.Command{
		Use:   "economics",
		Short: "What cheating costs, and what honesty costs the network", Annotations: terminal.FiguresOnly,
		Long: `Reckon whether leaving work undone pays. The work has a number of steps, each audited with the same
probability p on its own; a network audits work units, so there a step is a unit. An audit of a step
that was not done always finds it, because re-execution is exact to the bit.

  detection probability   1 - (1 - p)^faked, where faked = steps x cheat fraction, rounded up
  expected gain           cost x faked/steps - detection probability x (reward + stake),
                          over honest work; cheating is irrational when it is not above 0
  stake needed            the smallest stake for which that holds; with one step, p (R + S) >= C
  stake to post           what to stake so that a conviction takes as much: it takes half
  seat stake              what the market asks to stand behind such a step, by the parameters that a network
                          begins with: reward / (3/4 p) x 4, as a quarter of the auditors and the accuser may
                          be the cheat's own, and a conviction takes half; history does not lower it
  tolerant deposit        what a step of tolerant work loses that all who look find outside the tolerance:
                          reward / (27/64 p), p being 50 % at least, as three look; its seat stake is 4 of them
  network overhead        p: the part of all work that is done again
  audit cost              p x cost

--stake is what a conviction takes. Amounts are in ZEN with up to six decimals, rates and fractions
decimals or percentages. See docs/security.md for what the numbers mean.

With -o json: {"stake","reward","cost","audit_rate","steps","cheat_fraction","faked_steps",
"detection_probability","expected_gain","cheating_pays","stake_needed","stake_to_post",
"seat_stake","tolerant_deposit","network_overhead","audit_cost"}; the stakes are null when none is large enough.`,
		Example: `  starling network economics --stake 20 --reward 1.3 --cost 1 --audit-rate 5% --steps 1
  starling network economics --stake 1 --reward 1.3 --cost 1 --audit-rate 0.01 --steps 100 -o json
  starling network economics --stake 1 --reward 130 --cost 100 --audit-rate 0.05 --steps 1000 --cheat-fraction 0.001`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range []string{"stake", "reward", "cost", "audit-rate"} {
				if !cmd.Flags().Changed(name) {
					return usage.Error(cmd, fmt.Errorf("--%s is needed", name))
				}
			}
			if rate.Millionths > millionth || cheat.Millionths > millionth {
				return usage.Error(cmd, fmt.Errorf("--audit-rate and --cheat-fraction are at most 1"))
			}
			w := deterrence.CheatModel{
				Stake: stake.Millionths, Reward: pay.Millionths, Cost: cost.Millionths,
				AuditPPM: uint32(rate.Millionths), Steps: steps, CheatPPM: uint32(cheat.Millionths),
			}
			odds, err := w.Gain()
			if err != nil {
				return usage.Error(cmd, err)
			}
			e := reckoned(w, odds)
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Figures(e))
			}
			return e.print()
		},
	}
	f := cmd.Flags()
	f.Var(&stake, "stake", "what a conviction takes")
	f.Var(&pay, "reward", "what the whole work pays")
	f.Var(&cost, "cost", "what the whole work costs who does it")
	f.Var(&rate, "audit-rate", "probability that a step is audited")
	f.Uint32Var(&steps, "steps", 1, "number of steps that are audited each on its own")
	f.Var(&cheat, "cheat-fraction", "part of the steps that is left undone")
	return cmd
}

func reckoned(w deterrence.CheatModel, o deterrence.ExpectedGain) Economics {
	stake := func(uzen uint64) *float64 {
		if uzen == deterrence.NoStake {
			return nil
		}
		amount := zen(uzen)
		return &amount
	}
	return Economics{
		Stake: zen(w.Stake), Reward: zen(w.Reward), Cost: zen(w.Cost),
		AuditRate: zen(uint64(w.AuditPPM)), Steps: w.Steps,
		CheatFraction: zen(uint64(w.CheatPPM)),
		FakedSteps:    o.Faked, DetectionProbability: float64(o.Detection) / deterrence.Certainty,
		ExpectedGain: float64(o.Gain) / millionth, CheatingPays: o.Gain > 0,
		StakeNeeded: stake(o.Needed), StakeToPost: stake(deterrence.ToPost(o.Needed, penalty.DefaultSlashPPM)),
		SeatStake:       stake(deterrence.Seat(w.Reward/uint64(w.Steps), w.AuditPPM, registry.DefaultParams().CoverPPM, 0)),
		TolerantDeposit: stake(audit.Deposit(w.Reward/uint64(w.Steps), max(w.AuditPPM, audit.TolerantPPM))),
		NetworkOverhead: zen(uint64(w.AuditPPM)), AuditCost: zen(o.Audits),
	}
}

func (e Economics) print() error {
	amount := func(zen float64) string { return strconv.FormatFloat(zen, 'f', -1, 64) + " ZEN" }
	stake := func(zen *float64) string {
		if zen == nil {
			return "no stake is enough"
		}
		return amount(*zen)
	}
	verdict := "cheating does not pay"
	if e.CheatingPays {
		verdict = "cheating pays"
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, row := range [][2]string{
		{"detection probability", fmt.Sprintf("%.4g %%, with %d of %d steps left undone", 100*e.DetectionProbability,
			e.FakedSteps, e.Steps)},
		{"expected gain", amount(e.ExpectedGain) + ": " + verdict},
		{"stake needed", stake(e.StakeNeeded)},
		{"stake to post", stake(e.StakeToPost)},
		{"seat stake", stake(e.SeatStake)},
		{"tolerant deposit", stake(e.TolerantDeposit)},
		{"network overhead", fmt.Sprintf("%.4g %% of all work is done again", 100*e.NetworkOverhead)},
		{"audit cost", amount(e.AuditCost)},
	} {
		fmt.Fprintf(w, "%s\t%s\n", row[0], row[1])
	}
	return w.Flush()
}

const millionth = 1_000_000

// zen is an amount in uzen as a number of ZEN.
func zen(uzen uint64) float64 { return float64(uzen) / millionth }
