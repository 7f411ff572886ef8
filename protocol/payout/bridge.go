package payout

import (
	"bytes"
	"fmt"
	"math/big"
	"strings"
)

// Limits of bridges.
const (
	MaxBridges   = 8
	MaxTokens    = 16
	minEpoch     = 5 // blocks
	maxEpoch     = 1_000_000
	maxAmountBit = 200 // of all amounts: sums of them fit in 256 bits
)

// Own is the denomination of the coin that stands for itself on other chains, as a token that a bridge creates.
const Own = "uzen"

// Token is an ERC-20 token of another chain. Deposits of it are credited as a coin of the network, which is burned when
// it is withdrawn.
type Token struct {
	Address Address `cbor:"1,keyasint" json:"address"`
	Minimum []byte  `cbor:"2,keyasint,omitempty" json:"minimum,omitempty"` // of a withdrawal: base units, big-endian
}

// Bridge is a contract on an Ethereum-style chain.
type Bridge struct {
	EVM      uint64  `cbor:"1,keyasint" json:"evm_chain"` // the identifier of its chain
	Contract Address `cbor:"2,keyasint" json:"contract"`
	Minimum  uint64  `cbor:"3,keyasint,omitempty" json:"minimum,omitempty"` // uzen of a withdrawal
	Tokens   []Token `cbor:"4,keyasint,omitempty" json:"tokens,omitempty"`
}

// Params are the parameters of payouts.
type Params struct {
	EpochBlocks uint64   `cbor:"1,keyasint,omitempty" json:"epoch_blocks,omitempty"` // 0: there are no payouts
	Bridges     []Bridge `cbor:"2,keyasint,omitempty" json:"bridges,omitempty"`
}

// Bridge is that of a chain.
func (p Params) Bridge(evm uint64) (Bridge, error) {
	for _, b := range p.Bridges {
		if b.EVM == evm {
			return b, nil
		}
	}
	return Bridge{}, fmt.Errorf("%w: chain %d has none", ErrBridge, evm)
}

// Change returns why parameters cannot replace others. Bridges and tokens stay, because accounts may have claims.
func (p Params) Change(to Params) error {
	if to.EpochBlocks != 0 && (to.EpochBlocks < minEpoch || to.EpochBlocks > maxEpoch) {
		return fmt.Errorf("%w: %d blocks an epoch, wanted %d to %d", ErrBridge, to.EpochBlocks, minEpoch, maxEpoch)
	}
	if to.EpochBlocks == 0 && len(to.Bridges) > 0 { // sets that leave meanwhile could not hand over
		return fmt.Errorf("%w: no blocks an epoch, with bridges", ErrBridge)
	}
	if len(to.Bridges) > MaxBridges {
		return fmt.Errorf("%w: more than %d", ErrBridge, MaxBridges)
	}
	seen := map[uint64]bool{}
	for _, b := range to.Bridges {
		if b.EVM == 0 || b.EVM >= 1<<53 || seen[b.EVM] || b.Contract.IsZero() || len(b.Tokens) > MaxTokens {
			return fmt.Errorf("%w: of chain %d", ErrBridge, b.EVM)
		}
		seen[b.EVM] = true
		tokens := map[Address]bool{{}: true, b.Contract: true, b.Zen(): true}
		for _, t := range b.Tokens {
			if tokens[t.Address] || !small(t.Minimum) {
				return fmt.Errorf("%w: token %s of chain %d", ErrBridge, t.Address, b.EVM)
			}
			tokens[t.Address] = true
		}
	}
	for _, old := range p.Bridges {
		b, err := to.Bridge(old.EVM)
		if err != nil || b.Contract != old.Contract {
			return fmt.Errorf("%w: that of chain %d stays, with its contract", ErrBridge, old.EVM)
		}
		for _, t := range old.Tokens {
			if _, err := b.token(t.Address); err != nil {
				return err
			}
		}
	}
	return nil
}

// small reports whether an amount is in its one encoding, and far below the largest.
func small(amount []byte) bool {
	return len(amount) <= maxAmountBit/8 && (len(amount) == 0 || amount[0] != 0)
}

func (b Bridge) token(a Address) (Token, error) {
	for _, t := range b.Tokens {
		if t.Address == a {
			return t, nil
		}
	}
	return Token{}, fmt.Errorf("%w: chain %d has no token %s", ErrBridge, b.EVM, a)
}

// Zen is the address of the token that stands for ZEN: the first contract that the contract of the bridge created.
func (b Bridge) Zen() (a Address) {
	sum := Keccak(rlpList([][]byte{rlpBytes(b.Contract[:]), rlpNumber(1)}))
	copy(a[:], sum[12:])
	return a
}

// Denom is the denomination of a token of the bridge.
func (b Bridge) Denom(token Address) (string, error) {
	if token == b.Zen() {
		return Own, nil
	}
	t, err := b.token(token)
	return fmt.Sprintf("evm/%d/%s", b.EVM, strings.ToLower(t.Address.String())), err
}

// Denoms are the denominations of the coins that the bridge takes.
func (b Bridge) Denoms() []string {
	list := []string{Own}
	for _, t := range b.Tokens {
		if denom, err := b.Denom(t.Address); err == nil {
			list = append(list, denom)
		}
	}
	return list
}

// Find is the token of a denomination, and the least amount of a withdrawal.
func (b Bridge) Find(denom string) (Address, *big.Int, error) {
	if denom == Own {
		return b.Zen(), new(big.Int).SetUint64(b.Minimum), nil
	}
	for _, t := range b.Tokens {
		if d, err := b.Denom(t.Address); err == nil && d == denom {
			return t.Address, new(big.Int).SetBytes(t.Minimum), nil
		}
	}
	return Address{}, nil, fmt.Errorf("%w: chain %d has no token for %s", ErrBridge, b.EVM, denom)
}

// Entry is the total of an address in a token: what it may have claimed since the beginning.
type Entry struct {
	Account  Address `cbor:"1,keyasint" json:"account"`
	Token    Address `cbor:"2,keyasint" json:"token"`
	Total    []byte  `cbor:"3,keyasint" json:"total"`                        // base units, big-endian, as it is now
	Closed   []byte  `cbor:"4,keyasint,omitempty" json:"closed,omitempty"`   // in the roots from Epoch on
	Epoch    uint64  `cbor:"5,keyasint,omitempty" json:"epoch,omitempty"`    //
	Previous []byte  `cbor:"6,keyasint,omitempty" json:"previous,omitempty"` // in the roots before
}

// Key is the key of an entry.
func (e Entry) Key() []byte { return append(e.Account[:], e.Token[:]...) }

// Add adds an amount to a total.
func (e Entry) Add(amount *big.Int) (Entry, error) {
	sum := new(big.Int).SetBytes(e.Total)
	if amount.Sign() <= 0 || sum.Add(sum, amount).BitLen() > maxAmountBit {
		return e, fmt.Errorf("%w: a total of %s", ErrBridge, sum)
	}
	e.Total = sum.Bytes()
	return e, nil
}

// Close makes the total that of the roots from an epoch on.
func (e Entry) Close(epoch uint64) Entry {
	e.Previous, e.Closed, e.Epoch = e.Closed, e.Total, epoch
	return e
}

// At is the claim of the entry in the root of an epoch, the last that was closed or the one before; false: none.
func (e Entry) At(epoch uint64) (Claim, bool) {
	total := e.Closed
	if e.Epoch > epoch {
		total = e.Previous
	}
	return Claim{Account: e.Account, Token: e.Token, Total: new(big.Int).SetBytes(total)}, len(total) > 0
}

// State is what a network knows of a bridge.
type State struct {
	Epoch       uint64      `cbor:"1,keyasint,omitempty" json:"epoch,omitempty"`    // the last that was closed
	Signed      uint64      `cbor:"2,keyasint,omitempty" json:"signed,omitempty"`   // the last whose root is signed
	Root        Digest      `cbor:"3,keyasint" json:"root"`                         // of Signed
	Set         uint64      `cbor:"4,keyasint,omitempty" json:"set,omitempty"`      // number of the set that signed it
	Certificate Certificate `cbor:"5,keyasint" json:"certificate"`                  //
	Credited    uint64      `cbor:"6,keyasint,omitempty" json:"credited,omitempty"` // deposits
	Returned    uint64      `cbor:"7,keyasint,omitempty" json:"returned,omitempty"` // uzen that deposits brought back
	Locked      uint64      `cbor:"8,keyasint,omitempty" json:"locked,omitempty"`   // uzen that the network holds for it
}

// Payee is how an account is paid out.
type Payee struct {
	Address Address `cbor:"1,keyasint" json:"address"`
	EVM     uint64  `cbor:"2,keyasint,omitempty" json:"evm_chain,omitempty"` // where coins go by themselves; 0: nowhere
	Keep    uint64  `cbor:"3,keyasint,omitempty" json:"keep,omitempty"`      // uzen that stay
	Key     []byte  `cbor:"4,keyasint,omitempty" json:"key,omitempty"`       // Ed25519, of which Address is; none: EVM
}

// Open is a root that is being signed.
type Open struct {
	EVM   uint64 `cbor:"1,keyasint" json:"evm_chain"`
	Epoch uint64 `cbor:"2,keyasint" json:"epoch"`
	Root  Digest `cbor:"3,keyasint" json:"root"`
}

// Turn is the messages that the present set is signing: one handover, or the roots of bridges. A set hands over first,
// and the next set signs the roots, so that a contract which knows the latest set can check the latest root.
type Turn struct {
	Number   uint64   `cbor:"1,keyasint" json:"number"`
	Next     *Set     `cbor:"2,keyasint,omitempty" json:"next,omitempty"`
	Roots    []Open   `cbor:"3,keyasint,omitempty" json:"roots,omitempty"`
	Messages []Digest `cbor:"4,keyasint" json:"messages"`
}

// Deposit is tokens that the contract of a bridge has taken for an account of the network.
type Deposit struct {
	Number uint64  `cbor:"1,keyasint" json:"number"` // from 1 on, without gaps
	Token  Address `cbor:"2,keyasint" json:"token"`
	From   Address `cbor:"3,keyasint" json:"from"`
	To     []byte  `cbor:"4,keyasint" json:"to"`     // 20 bytes
	Amount []byte  `cbor:"5,keyasint" json:"amount"` // base units, big-endian
}

// Same reports whether two reports are of the same deposit.
func (d Deposit) Same(o Deposit) bool {
	return d.Number == o.Number && d.Token == o.Token && d.From == o.From && bytes.Equal(d.To, o.To) &&
		bytes.Equal(d.Amount, o.Amount)
}

// Valid reports whether a report of a deposit is in its one form.
func (d Deposit) Valid() bool {
	return d.Number > 0 && len(d.To) == 20 && len(d.Amount) > 0 && len(d.Amount) <= 32 && d.Amount[0] != 0
}
