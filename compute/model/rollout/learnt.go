package rollout

import "github.com/gomlx/gomlx/core/graph"

// Options say how answers are drawn and rewarded.
type Options struct {
	Group       int     // answers to each prompt
	Tokens      int     // of each answer
	Temperature float64 // of the distribution that tokens are drawn from
	TopP        float64 // share of the probability that they are drawn from, the most probable ones; 0 or 1: all
	KL          float64 // weight of the divergence from the reference model; 0: there is none
	Reward      Reward

	// Apart is how many steps a unit has whose answers other units draw, with the weights of a checkpoint that may be
	// older; 0: a step draws its answers by itself.
	Apart int

	// Correction is how tokens of answers count that other units drew.
	Correction Correction

	// Others is how many units draw answers besides those for the unit itself, of which a step learns from Shared groups,
	// too; see Swarm. 0: it learns from its own alone.
	Others, Shared int

	// Stages is how many texts each of the Group players of a prompt draws, of which all after the first one follow Reads
	// texts of each earlier stage; see Reading. 0 or 1: an answer alone.
	Stages, Reads int

	// Across says that the groups which a step takes of others are the first stage of its games: their players read these
	// answers. Units that draw for others then answer alone, and a unit that learns draws the texts of later stages.
	Across bool
}

// Valid reports whether answers can be drawn so in sequences of a length. Of an older policy they are drawn from all
// tokens: one outside of the nucleus of the policy that learns would have no ratio of probabilities.
func (r Options) Valid(length int) bool {
	return r.Group >= 2 && r.Group <= 1<<10 && r.Tokens >= 1 && r.Tokens < length && r.Temperature >= 0.01 &&
		r.Temperature <= 100 && r.KL >= 0 && r.KL <= 100 && r.Reward.Valid() && r.Apart >= 0 && r.Apart <= 1<<10 &&
		r.TopP >= 0 && r.TopP <= 1 && !(r.Apart > 0 && r.Policy().truncates()) && r.validShared() && r.validGame() &&
		r.Correction.valid(r.Apart > 0) && r.Room() < length
}

// validShared reports whether answers can be shared so.
func (r Options) validShared() bool {
	return r.Others >= 0 && r.Others < maxNodes && r.Shared >= 0 && r.Shared <= maxShared &&
		(r.Others > 0) == (r.Shared > 0) && (r.Others == 0 || r.Apart > 0)
}

// Policy is the distribution that tokens are drawn from.
func (r Options) Policy() Policy { return Policy{Temperature: r.Temperature, TopP: r.TopP} }

// Places in the list of nodes that Learnt returns.
const (
	PromptsAt   = 0           // int32 [n, width], or [n, group, width]: see Rows
	PaddingAt   = 1           // int32 [n]
	AnswersAt   = 2           // int32 [n, group, tokens], as drawn
	WeightAt    = 3           // float32 [n, group, tokens]: of the cross-entropy of a token
	RewardAt    = 4           // float32 [n, group]
	CountedAt   = 5           // float32 [n, group, tokens]: 1 for tokens that count
	placesDrawn = 6           // of the list
	ScoresAt    = placesDrawn // float32 [n, group, tokens]: cross-entropies, of answers that other units drew
)

// Learnt lists what is learnt from answers [n*group, tokens] with rewards [n, group].
func Learnt(prompts Prompts, answers, reward, counted *graph.Node) []*graph.Node {
	n, group, length := reward.Shape().Dim(0), reward.Shape().Dim(1), answers.Shape().Dim(1)
	advantage := graph.ExpandAndBroadcast(graph.Reshape(Advantages(reward), n*group), []int{n * group, length}, []int{-1})
	weight := graph.Mul(counted, advantage)
	grouped := func(x *graph.Node) *graph.Node { return graph.Reshape(x, n, group, length) }
	out := make([]*graph.Node, placesDrawn)
	out[PromptsAt], out[PaddingAt], out[AnswersAt] = prompts.Tokens, prompts.Padding, grouped(answers)
	out[WeightAt], out[RewardAt], out[CountedAt] = grouped(weight), reward, grouped(counted)
	return out
}
