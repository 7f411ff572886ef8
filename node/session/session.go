package session

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/endpoint"
	"github.com/starling-network/starling/client/ledger"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/uplink"
	"github.com/starling-network/starling/protocol/registry"
)

// ErrNotRegistered is returned when an account that never took part is to change its stake.
var ErrNotRegistered = errors.New("session: the account takes no part in the network")

// TransactHome lets the account of a folder do something on a network.
func TransactHome(ctx context.Context, dir, network string, do func(context.Context, *client.Client) error) error {
	h, err := home.Read(dir)
	if err != nil {
		return err
	}
	return TransactAs(ctx, h.Account(), network, do)
}

// TransactAs lets an account do something on a network.
func TransactAs(ctx context.Context, signer wallet.Signer, network string,
	do func(context.Context, *client.Client) error) error {
	c, err := client.Connect(network, signer)
	if err != nil {
		return err
	}
	defer c.Close()
	blocks, err := c.Blocks(ctx)
	if err != nil {
		return err
	}
	return uplink.While(ctx, blocks, silence, func(ctx context.Context) error {
		if err := c.Ready(ctx); err != nil {
			return err
		}
		return do(ctx, c)
	})
}

// silence is how long no block may come while an account does something on a network.
const silence = time.Minute

// Account is what a network says of an account. Amounts are in uzen.
type Account struct {
	Address      string `json:"address"`
	Exists       bool   `json:"exists"` // from its first coins on
	Balance      uint64 `json:"balance_uzen"`
	Transactions uint64 `json:"transactions"` // that it has made
	Stake        uint64 `json:"stake_uzen"`
	Slashed      uint64 `json:"slashed_uzen"`
	Leaving      uint64 `json:"leaving_uzen"` // of the stake
	// height from which it is paid out, if the account has no part in a run
	LeavesAt int64 `json:"leaves_at,omitempty"`
	// seconds until then, at the pace of the last blocks; 0: not known
	LeavesIn float64 `json:"leaves_in_seconds,omitempty"`
	Jailed   bool    `json:"jailed"`

	Coins []coins.Holding `json:"coins,omitempty"` // in coins other than ZEN

	Earning   bool   `json:"earning,omitempty"` // it has no stake of its own, and earns one
	Payee     string `json:"payee,omitempty"`   // account that is paid in its place
	NextPayee string `json:"next_payee,omitempty"`
	PayeeAt   int64  `json:"payee_at,omitempty"` // height from which NextPayee is paid
}

// ReadAccount asks a network about an account.
func ReadAccount(ctx context.Context, network, address string) (*Account, error) {
	c, head, err := DialReadOnly(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	at, a := c.At(head.Height), &Account{Address: address}
	switch a.Transactions, err = at.Coins.Transactions(ctx, address); {
	case errors.Is(err, client.ErrNotFound):
		return a, nil
	case err != nil:
		return nil, err
	}
	a.Exists = true
	if a.Balance, err = at.Coins.Balance(ctx, address); err != nil {
		return nil, err
	}
	if a.Coins, err = Holdings(ctx, at.Modules, address); err != nil {
		return nil, err
	}
	var p registry.Participant
	switch p, err = at.Registry.Participant(ctx, address); {
	case errors.Is(err, client.ErrNotFound):
		return a, nil
	case err != nil:
		return nil, err
	}
	a.Stake, a.Slashed, a.Jailed, a.Leaving, a.LeavesAt = p.Stake, p.Slashed, p.Jailed, p.Leaving, p.LeavesAt
	a.Earning, a.NextPayee, a.PayeeAt = p.Earning, p.Payee.Next, p.Payee.From
	if to := registry.Pays(p, head.Height); to != address {
		a.Payee = to
	}
	if a.PayeeAt <= head.Height {
		a.NextPayee, a.PayeeAt = "", 0
	}
	if left := a.LeavesAt - head.Height; a.Leaving > 0 && left > 0 {
		a.LeavesIn = float64(left) * BlockTime(ctx, c, head).Seconds()
	}
	return a, nil
}

// BlockTime is how long the last blocks took, in the mean; 0 if they are not kept.
func BlockTime(ctx context.Context, c *client.Client, head ledger.Head) time.Duration {
	const most = 100
	n := min(most, head.Height-2) // the first block has the time of the genesis, which may be any
	if n < 1 {
		return 0
	}
	first, err := c.Ledger.Record(ctx, head.Height-n)
	if err != nil {
		return 0
	}
	return head.Time.Sub(first.Time) / time.Duration(n)
}

// AccountHistory are the latest movements of an account, the newest first.
func AccountHistory(ctx context.Context, network, address string, limit int) ([]ledger.AccountTx, error) {
	c, _, err := DialReadOnly(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Ledger.History(ctx, address, limit)
}

// registered is the account as one that takes part, or ErrNotRegistered.
func registered(ctx context.Context, c *client.Client) (registry.Participant, error) {
	p, err := c.Registry.Participant(ctx, c.Address())
	if errors.Is(err, client.ErrNotFound) {
		err = ErrNotRegistered
	}
	return p, err
}

// AddStake adds to the stake of an account that takes part.
func AddStake(ctx context.Context, c *client.Client, amount uint64) error {
	p, err := registered(ctx, c)
	if err != nil {
		return err
	}
	p.Stake = amount
	return c.Registry.Register(ctx, p)
}

// UnjailStake lets an account that was convicted be matched again.
func UnjailStake(ctx context.Context, c *client.Client) error {
	if _, err := registered(ctx, c); err != nil {
		return err
	}
	return c.Registry.Unjail(ctx)
}

// SetPayee names the account that is paid in place of a worker or verifier, the account itself if worker is "".
func SetPayee(ctx context.Context, c *client.Client, worker, payee string) error {
	return c.Registry.SetPayee(ctx, cmp.Or(worker, c.Address()), payee)
}

// Unstake lets an amount of the stake of an account leave it; all of it if the amount is 0.
func Unstake(ctx context.Context, c *client.Client, amount uint64) error {
	p, err := registered(ctx, c)
	if err != nil {
		return err
	}
	return c.Registry.Unstake(ctx, cmp.Or(amount, p.Stake))
}

// DialLocal connects to the validator of a folder, for questions only. The caller closes the client.
func DialLocal(ctx context.Context, dir string) (*client.Client, ledger.Head, error) {
	f, err := keystore.ReadValidator(dir)
	if err != nil {
		return nil, ledger.Head{}, err
	}
	stopped := new(endpoint.Halted)
	if folder.ReadJSON(filepath.Join(dir, keystore.FileStopped), stopped) == nil {
		return nil, ledger.Head{}, stopped
	}
	return DialReadOnly(ctx, "http://"+f.RPC)
}

// DialReadOnly connects to a validator, for questions only, and asks it where it stands. The caller closes the client.
func DialReadOnly(ctx context.Context, network string) (*client.Client, ledger.Head, error) {
	c, err := client.Connect(network, wallet.KeyFromSeed([32]byte{})) // it signs nothing
	if err != nil {
		return nil, ledger.Head{}, err
	}
	h, err := c.Ledger.Head(ctx)
	if err != nil {
		c.Close()
		return nil, h, err
	}
	return c, h, nil
}

// Numerics is the version of the numerics that an order in the next block of a network must have. It is an error that
// wraps kernel.ErrVersion if this build does not compute it.
func Numerics(ctx context.Context, network string) (uint32, error) {
	c, head, err := DialReadOnly(ctx, network)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	p, err := c.Market.Params(ctx)
	if err != nil {
		return 0, err
	}
	version := p.NumericsAt(head.Height + 1)
	return version, kernel.Knows(version)
}
