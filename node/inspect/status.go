package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/books"
	"github.com/starling-network/starling/client/endpoint"
	"github.com/starling-network/starling/client/ledger"
	"github.com/starling-network/starling/client/validators"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/protocol/coin"
	rules "github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/standing"
)

// NetworkStatus is a network after one block.
type NetworkStatus struct {
	Network      string                 `json:"network"` // HTTP interface that was asked
	ChainID      string                 `json:"chain_id"`
	Height       int64                  `json:"height"`
	Time         time.Time              `json:"block_time"`
	CatchingUp   bool                   `json:"catching_up"` // the validator that was asked is behind the others
	Validators   []validators.Validator `json:"validators"`
	Participants []api.Participant      `json:"participants"`
	Orders       []api.Order            `json:"orders"` // the open ones
	Runs         []api.NetworkRun       `json:"runs"`   // those that are not over
	Account      *AccountStatus         `json:"account,omitempty"`
}

// AccountStatus is an account, and what it does and waits for.
type AccountStatus struct {
	Address string            `json:"address"`
	Balance uint64            `json:"balance_uzen"`
	Stake   uint64            `json:"stake_uzen"`
	Slashed uint64            `json:"slashed_uzen"`
	Jailed  bool              `json:"jailed"`
	Earning bool              `json:"earning,omitempty"` // its stake
	Payee   string            `json:"payee,omitempty"`   // account that is paid in its place
	Reasons []standing.Reason `json:"reasons"`
}

// AskNetwork reads a network through the HTTP interface of a validator. An account that is not empty is looked at, too.
func AskNetwork(ctx context.Context, network, account string) (*NetworkStatus, error) {
	c, head, err := session.DialReadOnly(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	s, err := Overview(ctx, c, head, account)
	if err == nil {
		s.Network = network
	}
	return s, err
}

// Overview reads a network after the block at which a validator stands.
func Overview(ctx context.Context, c *client.Client, head ledger.Head, account string) (s *NetworkStatus, err error) {
	s = &NetworkStatus{ChainID: head.ChainID, Height: head.Height, Time: head.Time, CatchingUp: head.CatchingUp,
		Participants: []api.Participant{}, Orders: []api.Order{}, Runs: []api.NetworkRun{}}
	if s.Validators, err = c.Validators.Voting(ctx, head.Height); err != nil {
		return nil, err
	}
	at := c.At(head.Height)
	v, err := readStatus(ctx, at, head.Height, account)
	if err != nil {
		return nil, err
	}
	for _, o := range v.Orders {
		s.Orders = append(s.Orders, api.Order{Job: o.ID, Why: string(o.Why), Budget: o.Budget, Coin: coins.Shown(o.Coin)})
	}
	for _, r := range v.Runs {
		s.Runs = append(s.Runs, api.NetworkRun{
			Job: r.Terms.Job, Phase: r.Phase.String(), Round: min(r.Round+1, r.Terms.Rounds), Rounds: r.Terms.Rounds,
			Open:    len(r.Open),
			Workers: len(r.Active(crew.Worker)), Verifiers: len(r.Active(crew.Verifier)), Budget: r.Escrow.Budget,
			Paid: r.Escrow.Paid + r.Escrow.Fee, Coin: coins.Shown(r.Coin),
		})
	}
	if s.Participants, err = participants(ctx, at, v); err != nil || account == "" {
		return s, err
	}
	s.Account = &AccountStatus{Address: account, Reasons: standing.Explain(v)}
	if p := v.Participant; p != nil {
		s.Account.Stake, s.Account.Slashed, s.Account.Jailed = p.Stake, p.Slashed, p.Jailed
		if s.Account.Earning = p.Earning; registry.Pays(*p, head.Height) != account {
			s.Account.Payee = registry.Pays(*p, head.Height)
		}
	}
	s.Account.Balance, err = at.Coins.Balance(ctx, account)
	return s, err
}

// Standing reads what an account does and waits for, at the height given.
func Standing(ctx context.Context, c *client.Client, height int64, account string) ([]standing.Reason, error) {
	v, err := readStatus(ctx, c.At(height), height, account)
	if err != nil {
		return nil, err
	}
	return standing.Explain(v), nil
}

// readStatus reads what the chain says of an account at a height, through a client that reads there.
func readStatus(ctx context.Context, c *client.Client, height int64, account string) (standing.View, error) {
	v := standing.View{Who: account, Height: height}
	var err error
	if v.Stakes, err = c.Registry.Params(ctx); err != nil {
		return v, err
	}
	if account != "" {
		switch p, err := c.Registry.Participant(ctx, account); {
		case err == nil:
			v.Participant = &p
		case !errors.Is(err, client.ErrNotFound):
			return v, err
		}
	}
	if v.Offers, err = c.Market.Offers(ctx); err != nil {
		return v, err
	}
	if account != "" {
		if v.Lots, err = c.Market.Lots(ctx); err != nil {
			return v, err
		}
	}
	orders, err := c.Market.Orders(ctx)
	if err != nil {
		return v, err
	}
	for _, o := range orders {
		v.Orders = append(v.Orders, standing.Order{Order: o.Order, Why: rules.Reason(o.Why)})
	}
	jobs, err := c.Training.Runs(ctx, true)
	if err != nil {
		return v, err
	}
	for _, job := range jobs {
		var r standing.Run
		if r.State, err = c.Training.Run(ctx, job); err != nil {
			return v, err
		}
		if r.Escrow, err = c.Market.Escrow(ctx, job); err != nil {
			return v, err
		}
		o, err := c.Market.PlacedOrder(ctx, job)
		if err != nil {
			return v, err
		}
		r.Coin = o.Coin
		if r.Disputed() {
			if r.Disputes, err = c.Training.Disputes(ctx, job); err != nil {
				return v, err
			}
		}
		v.Runs = append(v.Runs, r)
	}
	return v, nil
}

func participants(ctx context.Context, c *client.Client, v standing.View) ([]api.Participant, error) {
	known, err := c.Market.Coins(ctx)
	if err != nil {
		return nil, err
	}
	pools, err := c.Delegation.Pools(ctx)
	if err != nil {
		return nil, err
	}
	delegated := map[string]uint64{}
	for _, p := range pools {
		delegated[p.ID] = p.Staying
	}
	all, err := c.Registry.Participants(ctx)
	list := make([]api.Participant, 0, len(all))
	for _, p := range all {
		s := api.Participant{
			ID: p.ID, Roles: []string{}, Stake: p.Stake, Jailed: p.Jailed, Device: p.Device, Jobs: []string{},
			Class: p.Class(v.Stakes).String(), Rate: p.Rate, Delegated: delegated[p.ID],
		}
		for _, r := range p.Roles {
			s.Roles = append(s.Roles, r.String())
		}
		for _, o := range v.Offers {
			if o.ID == p.ID {
				s.Offers, s.Price, s.Asks = true, o.Price, asksOf(o, known)
				if o.Foreign {
					s.Price = 0
				}
			}
		}
		for _, r := range v.Runs {
			if m, ok := r.Member(p.ID); ok && m.Active {
				s.Jobs = append(s.Jobs, r.Terms.Job)
			}
		}
		list = append(list, s)
	}
	return list, err
}

// asksOf are the prices of an offer in coins other than ZEN that a network knows.
func asksOf(o rules.Offer, known []coin.Registered) (asks []api.Ask) {
	for _, c := range known {
		if price, takes := o.Asked(c.Denom); takes {
			asks = append(asks, api.Ask{Price: price, Coin: coins.Shown(c.Coin)})
		}
	}
	return asks
}

// WithdrawOffer withdraws the offer of a worker or verifier that does not run.
func WithdrawOffer(ctx context.Context, dir string, f keystore.PartyFile) error {
	unlock, err := folder.Lock(dir)
	if err != nil {
		return err
	}
	defer func() { _ = unlock() }()
	classes := []crew.Role{cmp.Or(crew.ClassNamed(f.Role), crew.Worker)}
	if f.Verifies {
		classes = append(classes, crew.Verifier)
	}
	return session.TransactHome(ctx, dir, f.Network, func(ctx context.Context, c *client.Client) error {
		for _, class := range classes {
			if err := c.Market.Offer(ctx, class, 0, 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// ValidatorStatus is a validator as it and the chain see it.
type ValidatorStatus struct {
	Home        string    `json:"home"`
	Network     string    `json:"network"` // its HTTP interface
	ChainID     string    `json:"chain_id"`
	NodeID      string    `json:"node_id"`
	Address     string    `json:"address"` // of its votes: hexadecimal
	Height      int64     `json:"height"`
	Time        time.Time `json:"block_time"`
	CatchingUp  bool      `json:"catching_up"`
	Power       int64     `json:"power"` // 0: it does not vote
	OfPower     int64     `json:"of_power"`
	Signed      bool      `json:"signed"` // the latest block
	Missed      int64     `json:"missed_blocks"`
	Window      int64     `json:"window_blocks"` // among the latest so many
	JailedUntil time.Time `json:"jailed_until,omitzero"`
	Tombstoned  bool      `json:"tombstoned"`
	Peers       int       `json:"peers"` // other validators' processes that it is connected to
	OfPeers     int       `json:"of_peers"`
}

// AskValidator asks the validator of a folder that InitNetwork made: an *endpoint.Halted if its process has stopped it.
func AskValidator(ctx context.Context, dir string) (*ValidatorStatus, error) {
	var f keystore.ValidatorFile
	if err := folder.ReadJSON(filepath.Join(dir, keystore.FileValidator), &f); err != nil {
		return nil, fmt.Errorf("%w: %w", keystore.ErrNoValidator, err)
	}
	s := &ValidatorStatus{Home: dir, Network: "http://" + f.RPC, ChainID: f.ChainID, OfPeers: len(f.Peers)}
	stopped := new(endpoint.Halted) // what was begun before it stopped may answer for a while
	if folder.ReadJSON(filepath.Join(dir, keystore.FileStopped), stopped) == nil {
		return nil, stopped
	}
	c, h, err := session.DialReadOnly(ctx, s.Network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	s.ChainID, s.NodeID, s.Address, s.Height, s.Time = h.ChainID, h.NodeID, h.Address, h.Height, h.Time
	s.CatchingUp, s.Power, s.Peers = h.CatchingUp, h.Power, h.Peers
	all, err := c.Validators.Voting(ctx, h.Height)
	if err != nil {
		return nil, err
	}
	for _, v := range all {
		s.OfPower += v.Power
		s.Signed = s.Signed || v.Address == s.Address && v.Signed
	}
	signing, err := c.Validators.Signing(ctx, h.Consensus)
	if err != nil && !errors.Is(err, client.ErrNotFound) {
		return nil, err
	}
	s.Missed, s.Window, s.JailedUntil, s.Tombstoned = signing.Missed, signing.Window, signing.JailedUntil,
		signing.Tombstoned
	return s, nil
}

// Balances are the coins of a network after one block, counted twice, module for module.
type Balances struct {
	ChainID string                `json:"chain_id"`
	Height  int64                 `json:"height"`
	Books   []books.ModuleBalance `json:"books"`
	Wrong   []string              `json:"wrong,omitempty"`
}

// CheckBooks compares what every module of the chain has written down with the coins in its account.
func CheckBooks(ctx context.Context, network string) (*Balances, error) {
	c, head, err := session.DialReadOnly(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	b := &Balances{ChainID: head.ChainID, Height: head.Height}
	if b.Books, err = books.Count(ctx, c.At(head.Height)); err != nil {
		return nil, err
	}
	for _, book := range b.Books {
		if !book.Balanced() {
			b.Wrong = append(b.Wrong, fmt.Sprintf("%s accounts for %s, and %s are there", book.Module,
				book.Coin.Text(book.Owed), book.Coin.Text(book.Held)))
		}
	}
	return b, nil
}
