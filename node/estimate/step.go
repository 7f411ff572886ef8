package estimate

import (
	"fmt"

	"github.com/starling-network/starling/protocol/registry"
)

// Step is a class or a tier of a network that a machine does not have, and what it lacks for it.
type Step struct {
	Name  string   `json:"name"`
	Tier  bool     `json:"tier"` // a commitment to uptime; false: a class of machine
	Lacks []string `json:"lacks"`
	// weight of its work or of its stake, when rewards of an epoch are shared, and that of the machine as it is
	WeighsPPM uint64 `json:"weighs_ppm"`
	NowPPM    uint64 `json:"now_ppm"`
}

var kinds = map[registry.Kind]string{registry.CPU: "a processor", registry.GPU: "a GPU", registry.Apple: "Apple's"}

// Raises are the classes and tiers that weigh more than those of a participant, with the requirements that it misses.
func Raises(p registry.Participant, params registry.Params) []Step {
	var steps []Step
	now := uint64(p.MultiplierPPM(params))
	for _, r := range params.Classes {
		if uint64(r.MultiplierPPM) <= now || r.Class == p.Class(params) {
			continue
		}
		s := Step{Name: r.Class.String(), WeighsPPM: uint64(r.MultiplierPPM), NowPPM: now}
		if r.Kind != p.Hardware.Kind {
			s.Lacks = append(s.Lacks, "a device that is "+kinds[r.Kind])
		}
		s.lacks(p.Hardware.Memory < r.Memory, memory(r.Memory), declared(p.Hardware.Memory, memory, "--memory"))
		s.lacks(p.Rate < r.Rate, rate(r.Rate), "it has "+rate(p.Rate))
		steps = append(steps, s)
	}
	mine, _ := params.TierRule(p.Tier)
	for _, r := range params.Tiers {
		if r.Weight <= mine.Weight {
			continue
		}
		s := Step{Name: r.Tier.String(), Tier: true, WeighsPPM: uint64(r.Weight) * 1e6,
			NowPPM: uint64(mine.Weight) * 1e6}
		s.lacks(p.Hardware.Memory < r.Memory, memory(r.Memory), declared(p.Hardware.Memory, memory, "--memory"))
		s.lacks(p.Hardware.Upload < r.Upload, upload(r.Upload), declared(p.Hardware.Upload, upload, "--upload"))
		s.lacks(p.Firm() < r.Stake, stake(r.Stake), "it has "+stake(p.Firm()))
		s.Lacks = append(s.Lacks, fmt.Sprintf("%.1f %% of uptime, which is promised", float64(r.UptimePPM)/1e4))
		steps = append(steps, s)
	}
	return steps
}

func (s *Step) lacks(short bool, needs, has string) {
	if short {
		s.Lacks = append(s.Lacks, needs+" ("+has+")")
	}
}

// declared says what a participant declares, or how it would.
func declared(amount uint64, text func(uint64) string, flag string) string {
	if amount == 0 {
		return "it declares none: give " + flag
	}
	return "it declares " + text(amount)
}

func memory(mib uint64) string  { return fmt.Sprintf("%.3g GiB of memory", float64(mib)/1024) }
func upload(kbps uint64) string { return fmt.Sprintf("%.3g Mbit/s of upload", float64(kbps)/1e3) }
func stake(uzen uint64) string  { return fmt.Sprintf("%.6g ZEN of stake", float64(uzen)/1e6) }
func rate(ops uint64) string    { return fmt.Sprintf("%.3gG operations a second", float64(ops)/1e9) }
