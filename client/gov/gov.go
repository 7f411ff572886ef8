// Package gov speaks to the governance of a chain: it reads proposals and makes them, votes, and drafts proposals that
// change the parameters of a module. It decides nothing about them.
package gov

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkquery "github.com/cosmos/cosmos-sdk/types/query"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	distrtypes "github.com/cosmos/cosmos-sdk/x/distribution/types"
	govtypes "github.com/cosmos/cosmos-sdk/x/gov/types"
	govv1 "github.com/cosmos/cosmos-sdk/x/gov/types/v1"
	slashingtypes "github.com/cosmos/cosmos-sdk/x/slashing/types"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/wire"
	"github.com/starling-network/starling/chain/x/beacon/beaconpb"
	"github.com/starling-network/starling/chain/x/hosting/hostingpb"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/payout/payoutpb"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/chain/x/reward/rewardpb"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/client/module/attested"
	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/protocol/coin"
)

// Account is the account that proposes and votes.
type Account interface {
	module.Account
	// Try executes messages without a block, and returns the gas that they need.
	Try(ctx context.Context, msgs ...sdk.Msg) (uint64, error)
}

// Gov speaks for one account.
type Gov struct {
	account Account
	modules module.Modules
}

// New returns the governance for an account.
func New(a Account) Gov { return Gov{a, module.Of(a)} }

// Proposal is one of governance. The votes are those of now while it is voted on, and those that decided it after.
type Proposal struct {
	ID       uint64
	Title    string
	Summary  string
	Status   string // deposit, voting, passed, rejected or failed
	Failed   string // why its messages could not be executed
	Proposer string
	Deposit  uint64            // uzen so far
	Ends     time.Time         // of the deposits or of the votes; zero: it is decided
	Messages []json.RawMessage // as in a file of Propose
	Votes    map[string]string // uzen of stake for yes, no, abstain and veto
}

// Proposed is a proposal to make, in the form of the file that other programs of the ecosystem take.
type Proposed struct {
	Messages  []sdk.Msg
	Title     string
	Summary   string
	Metadata  string
	Expedited bool
}

// Governance is the account of governance, in whose name proposals act.
func Governance() string { return wallet.ModuleAddress(govtypes.ModuleName) }

var statuses = map[govv1.ProposalStatus]string{
	govv1.StatusDepositPeriod: "deposit", govv1.StatusVotingPeriod: "voting", govv1.StatusPassed: "passed",
	govv1.StatusRejected: "rejected", govv1.StatusFailed: "failed",
}

// Proposals are those of governance, the latest first, at most limit.
func (g Gov) Proposals(ctx context.Context, limit uint64) ([]Proposal, error) {
	r, err := govv1.NewQueryClient(g.account).Proposals(ctx,
		&govv1.QueryProposalsRequest{Pagination: &sdkquery.PageRequest{Limit: limit, Reverse: true}})
	if err != nil {
		return nil, query.Known(err)
	}
	var all []Proposal
	for _, p := range r.Proposals {
		one, err := g.proposal(ctx, p)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// Proposal is one of governance, or ErrNotFound.
func (g Gov) Proposal(ctx context.Context, id uint64) (Proposal, error) {
	r, err := govv1.NewQueryClient(g.account).Proposal(ctx, &govv1.QueryProposalRequest{ProposalId: id})
	if err != nil {
		return Proposal{}, query.Known(err)
	}
	return g.proposal(ctx, r.Proposal)
}

func (g Gov) proposal(ctx context.Context, p *govv1.Proposal) (Proposal, error) {
	out := Proposal{
		ID: p.Id, Title: p.Title, Summary: p.Summary, Status: statuses[p.Status], Failed: p.FailedReason,
		Proposer: p.Proposer,
		Deposit:  sdk.Coins(p.TotalDeposit).AmountOf(adapter.Denom).Uint64(),
	}
	tally := p.FinalTallyResult
	switch {
	case p.Status == govv1.StatusDepositPeriod && p.DepositEndTime != nil:
		out.Ends = *p.DepositEndTime
	case p.Status == govv1.StatusVotingPeriod && p.VotingEndTime != nil:
		out.Ends = *p.VotingEndTime
		r, err := govv1.NewQueryClient(g.account).TallyResult(ctx, &govv1.QueryTallyResultRequest{ProposalId: p.Id})
		if err != nil {
			return out, query.Known(err)
		}
		tally = r.Tally
	}
	if tally != nil {
		out.Votes = map[string]string{"yes": tally.YesCount, "no": tally.NoCount, "abstain": tally.AbstainCount,
			"veto": tally.NoWithVetoCount}
	}
	e, err := wire.Shared()
	if err != nil {
		return out, err
	}
	for _, m := range p.Messages {
		text, err := e.Codec.MarshalJSON(m)
		if err != nil {
			return out, fmt.Errorf("client: proposal %d: %w", p.Id, err)
		}
		out.Messages = append(out.Messages, text)
	}
	return out, nil
}

// ErrProposal is returned for a file that holds no proposal.
type ErrProposal struct{ Why string }

// Error implements error.
func (e *ErrProposal) Error() string { return "client: not a proposal: " + e.Why }

// ParseProposal reads the file of a proposal: {"title","summary","metadata","expedited","messages":[{"@type":...}]}.
// Every message acts in the name of governance.
func ParseProposal(text []byte) (p Proposed, err error) {
	var file struct {
		Messages                 []json.RawMessage
		Title, Summary, Metadata string
		Expedited                bool
		Deposit                  string // of other programs: it is paid as the command says
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return p, &ErrProposal{err.Error()}
	}
	e, err := wire.Shared()
	if err != nil {
		return p, err
	}
	for i, raw := range file.Messages {
		var m sdk.Msg
		if err := e.Codec.UnmarshalInterfaceJSON(raw, &m); err != nil {
			return p, &ErrProposal{fmt.Sprintf("message %d: %v", i, err)}
		}
		signers, _, err := e.Codec.GetMsgV1Signers(m)
		if err != nil || len(signers) != 1 || sdk.AccAddress(signers[0]).String() != Governance() {
			return p, &ErrProposal{fmt.Sprintf("message %d does not act as governance, %s", i, Governance())}
		}
		p.Messages = append(p.Messages, m)
	}
	if len(p.Messages) == 0 || file.Title == "" || file.Summary == "" {
		return p, &ErrProposal{"it needs a title, a summary and messages"}
	}
	p.Title, p.Summary, p.Metadata, p.Expedited = file.Title, file.Summary, file.Metadata, file.Expedited
	return p, nil
}

func (g Gov) submission(p Proposed, deposit uint64) (sdk.Msg, error) {
	return govv1.NewMsgSubmitProposal(p.Messages, adapter.Coins(deposit), g.account.Address(), p.Metadata, p.Title,
		p.Summary, p.Expedited)
}

// Propose makes a proposal with a deposit in uzen, and returns its number.
func (g Gov) Propose(ctx context.Context, p Proposed, deposit uint64) (uint64, transaction.Result, error) {
	m, err := g.submission(p, deposit)
	if err != nil {
		return 0, transaction.Result{}, err
	}
	r, err := g.account.Submit(ctx, m)
	if err != nil {
		return 0, r, err
	}
	for _, e := range r.Events {
		for _, a := range e.Attributes {
			if e.Type == govtypes.EventTypeSubmitProposal && a.Key == govtypes.AttributeKeyProposalID {
				var id uint64
				_, err := fmt.Sscan(a.Value, &id)
				return id, r, err
			}
		}
	}
	return 0, r, fmt.Errorf("client: the chain gave the proposal no number")
}

// TryProposal is the gas that Propose would need, or the refusal; nothing is proposed.
func (g Gov) TryProposal(ctx context.Context, p Proposed, deposit uint64) (uint64, error) {
	m, err := g.submission(p, deposit)
	if err != nil {
		return 0, err
	}
	return g.account.Try(ctx, m)
}

// DepositFor adds to the deposit of a proposal, in uzen.
func (g Gov) DepositFor(ctx context.Context, id, amount uint64) (transaction.Result, error) {
	return g.account.Submit(ctx, &govv1.MsgDeposit{ProposalId: id, Depositor: g.account.Address(),
		Amount: adapter.Coins(amount)})
}

var options = map[string]govv1.VoteOption{"yes": govv1.OptionYes, "no": govv1.OptionNo, "abstain": govv1.OptionAbstain,
	"veto": govv1.OptionNoWithVeto}

// VoteOptions are what can be voted.
func VoteOptions() []string { return slices.Sorted(maps.Keys(options)) }

// Vote votes on a proposal, with the stake of the account: one of VoteOptions.
func (g Gov) Vote(ctx context.Context, id uint64, option string) (transaction.Result, error) {
	return g.account.Submit(ctx, &govv1.MsgVote{ProposalId: id, Voter: g.account.Address(), Option: options[option]})
}

// TryVote is the gas that Vote would need, or the refusal.
func (g Gov) TryVote(ctx context.Context, id uint64, option string) (uint64, error) {
	return g.account.Try(ctx, &govv1.MsgVote{ProposalId: id, Voter: g.account.Address(), Option: options[option]})
}

// update makes the message that sets the parameters of a module to their present values.
type update func(ctx context.Context, g Gov) (sdk.Msg, error)

var updates = map[string]update{
	"market": func(ctx context.Context, g Gov) (sdk.Msg, error) {
		p, err := g.modules.Market.Params(ctx)
		return &marketpb.MsgUpdateParams{Authority: Governance(), Params: marketpb.FromParams(p)}, err
	},
	"registry": func(ctx context.Context, g Gov) (sdk.Msg, error) {
		p, err := g.modules.Registry.Params(ctx)
		return &registrypb.MsgUpdateParams{Authority: Governance(), Params: registrypb.FromParams(p)}, err
	},
	"attestation": func(ctx context.Context, g Gov) (sdk.Msg, error) {
		roots, err := attested.Client{Account: g.account}.Roots(ctx)
		m := &registrypb.MsgPinRoots{Authority: Governance()}
		for _, r := range roots {
			m.Roots = append(m.Roots, registrypb.Root{Technology: string(r.Technology), Digest: r.Digest[:], Least: r.Least})
		}
		return m, err
	},
	"reward": func(ctx context.Context, g Gov) (sdk.Msg, error) {
		s, err := g.modules.Reward.Schedule(ctx)
		return &rewardpb.MsgUpdateParams{Authority: Governance(), Params: rewardpb.Params{
			PerEpoch: s.PerEpoch, Halving: s.Halving, BasePpm: s.BasePPM, WorkPpm: s.WorkPPM, BandwidthPpm: s.BandwidthPPM,
		}}, err
	},
	"training": func(ctx context.Context, g Gov) (sdk.Msg, error) {
		p, err := g.modules.Training.Penalty(ctx)
		return &trainingpb.MsgUpdateParams{Authority: Governance(), Params: trainingpb.Params{
			SlashPpm: p.SlashPPM, BountyPpm: p.BountyPPM, UnopenedPpm: p.UnopenedPPM, FirstPpm: p.FirstPPM,
			MemoryBlocks: p.MemoryBlocks,
		}}, err
	},
	"beacon": func(ctx context.Context, g Gov) (sdk.Msg, error) {
		r, err := beaconpb.NewQueryClient(g.account).Params(ctx, &beaconpb.QueryParamsRequest{})
		return &beaconpb.MsgUpdateParams{Authority: Governance(), Params: r.GetParams()}, query.Known(err)
	},
	"payout": func(ctx context.Context, g Gov) (sdk.Msg, error) {
		p, err := g.modules.Payout.Params(ctx)
		return &payoutpb.MsgUpdateParams{Authority: Governance(), Params: p}, err
	},
	"hosting": func(ctx context.Context, g Gov) (sdk.Msg, error) {
		p, err := g.modules.Hosting.Params(ctx)
		return &hostingpb.MsgUpdateParams{Authority: Governance(), Params: p}, err
	},
	"bank": func(ctx context.Context, g Gov) (sdk.Msg, error) {
		r, err := banktypes.NewQueryClient(g.account).Params(ctx, &banktypes.QueryParamsRequest{})
		if err != nil {
			return nil, query.Known(err)
		}
		return &banktypes.MsgUpdateParams{Authority: Governance(), Params: r.Params}, nil
	},
	"staking": func(ctx context.Context, g Gov) (sdk.Msg, error) {
		r, err := stakingtypes.NewQueryClient(g.account).Params(ctx, &stakingtypes.QueryParamsRequest{})
		if err != nil {
			return nil, query.Known(err)
		}
		return &stakingtypes.MsgUpdateParams{Authority: Governance(), Params: r.Params}, nil
	},
	"slashing": func(ctx context.Context, g Gov) (sdk.Msg, error) {
		r, err := slashingtypes.NewQueryClient(g.account).Params(ctx, &slashingtypes.QueryParamsRequest{})
		if err != nil {
			return nil, query.Known(err)
		}
		return &slashingtypes.MsgUpdateParams{Authority: Governance(), Params: r.Params}, nil
	},
	"distribution": func(ctx context.Context, g Gov) (sdk.Msg, error) {
		r, err := distrtypes.NewQueryClient(g.account).Params(ctx, &distrtypes.QueryParamsRequest{})
		if err != nil {
			return nil, query.Known(err)
		}
		return &distrtypes.MsgUpdateParams{Authority: Governance(), Params: r.Params}, nil
	},
	"gov": func(ctx context.Context, g Gov) (sdk.Msg, error) {
		r, err := govv1.NewQueryClient(g.account).Params(ctx, &govv1.QueryParamsRequest{ParamsType: govv1.ParamVoting})
		if err != nil {
			return nil, query.Known(err)
		}
		return &govv1.MsgUpdateParams{Authority: Governance(), Params: *r.Params}, nil
	},
}

// Governed are the modules whose parameters Draft knows.
func Governed() []string { return slices.Sorted(maps.Keys(updates)) }

// Draft is the file of a proposal that sets the parameters of a module to their present values: the reader edits the
// values to change.
func (g Gov) Draft(ctx context.Context, module string) ([]byte, error) {
	update, ok := updates[module]
	if !ok {
		return nil, fmt.Errorf("%w: no module %q has parameters", query.ErrNotFound, module)
	}
	m, err := update(ctx, g)
	if err != nil {
		return nil, err
	}
	return file("Change the parameters of "+module, "Say what changes, and why.", m)
}

// file is the file of a proposal with one message.
func file(title, summary string, m sdk.Msg) ([]byte, error) {
	e, err := wire.Shared()
	if err != nil {
		return nil, err
	}
	text, err := e.Codec.MarshalInterfaceJSON(m)
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(struct {
		Title    string            `json:"title"`
		Summary  string            `json:"summary"`
		Messages []json.RawMessage `json:"messages"`
	}{title, summary, []json.RawMessage{text}}, "", "  ")
}

// DraftCoin is the file of a proposal that registers a coin in which orders may be placed, or changes its fee and
// whether it takes orders.
func DraftCoin(c coin.Registered) ([]byte, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return file("Take orders in "+c.Name(), fmt.Sprintf("%s has %d decimals. An order that ends without a run pays %s.",
		c.Name(), c.Exponent, c.Text(c.Waiting)), &marketpb.MsgRegisterCoin{Authority: Governance(), Denom: c.Denom,
		Symbol: c.Symbol, Decimals: c.Exponent, Waiting: c.Waiting, Closed: c.Closed})
}
