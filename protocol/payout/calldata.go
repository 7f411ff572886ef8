package payout

import "math/big"

// The calls of contracts/StarlingPayout.sol in the encoding of the Solidity ABI: a head of 32 bytes for each value, and
// after all heads what has no fixed size, at the offset that its head says.

// value is an encoded value; offset says that its head is an offset.
type value struct {
	data   []byte
	offset bool
}

func fixed(b []byte) value { return value{data: b} }

// tuple encodes values one after the other.
func tuple(values ...value) []byte {
	var heads, tails []byte
	for _, v := range values {
		if v.offset {
			heads = append(heads, word64(uint64(32*len(values)+len(tails)))...)
			tails = append(tails, v.data...)
		} else {
			heads = append(heads, v.data...)
		}
	}
	return append(heads, tails...)
}

func blob(b []byte) value {
	out := append(word64(uint64(len(b))), b...)
	return value{append(out, make([]byte, -len(b)&31)...), true}
}

func words(list []Digest) value {
	out := word64(uint64(len(list)))
	for _, d := range list {
		out = append(out, d[:]...)
	}
	return value{out, true}
}

func array(list []value) value {
	return value{append(word64(uint64(len(list))), tuple(list...)...), true}
}

func call(signature string, values ...value) []byte {
	selector := Keccak([]byte(signature))
	return append(selector[:4:4], tuple(values...)...)
}

const certificateType = "(bytes,uint256,uint256,bytes32,(uint256,uint256,bytes,bytes32[])[],bytes)"

func (c Certificate) value() (value, error) {
	key, err := precompiled2(c.Key)
	if err != nil {
		return value{}, err
	}
	signature, err := precompiled1(c.Signature)
	if err != nil {
		return value{}, err
	}
	absent := make([]value, len(c.Absent))
	for i, a := range c.Absent {
		key, err := precompiled2(a.Key)
		if err != nil {
			return value{}, err
		}
		absent[i] = value{tuple(fixed(word64(a.Index)), fixed(word64(a.Power)), blob(key), words(a.Proof)), true}
	}
	return value{tuple(blob(key), fixed(word64(c.Power)), fixed(word64(c.Total)), fixed(c.Members[:]), array(absent),
		blob(signature)), true}, nil
}

// CallRoot is the call that stores a signed root.
func CallRoot(epoch uint64, root Digest, c Certificate) ([]byte, error) {
	v, err := c.value()
	return call("submitRoot(uint64,bytes32,"+certificateType+")", fixed(word64(epoch)), fixed(root[:]), v), err
}

// Handover is a set as contracts know it, signed by the set before.
type Handover struct {
	Number      uint64      `cbor:"1,keyasint" json:"number"`
	Set         Digest      `cbor:"2,keyasint" json:"set"`
	Certificate Certificate `cbor:"3,keyasint" json:"certificate"`
}

// CallHandovers is the call that moves a contract from set to set.
func CallHandovers(list []Handover) ([]byte, error) {
	var sets []Digest
	var certificates []value
	for _, h := range list {
		v, err := h.Certificate.value()
		if err != nil {
			return nil, err
		}
		sets, certificates = append(sets, h.Set), append(certificates, v)
	}
	return call("handover(bytes32[],"+certificateType+"[])", words(sets), array(certificates)), nil
}

// CallClaims is the call that pays claims.
func CallClaims(claims []Proof) []byte {
	list := make([]value, len(claims))
	for i, c := range claims {
		total := word(new(big.Int).SetBytes(c.Total))
		list[i] = value{tuple(fixed(c.Account.word()), fixed(c.Token.word()), fixed(total), words(c.Path)), true}
	}
	return call("claim((address,address,uint256,bytes32[])[])", array(list))
}

// Created is what follows the code of the contract in the transaction that creates it: its network, and the set whose
// signatures it takes first.
func Created(network Digest, number uint64, set Digest) []byte {
	return tuple(fixed(network[:]), fixed(word64(number)), fixed(set[:]))
}

// CallDeposit is the call that deposits tokens for the account of the network with 20 bytes as its address.
func CallDeposit(token Address, amount *big.Int, to []byte) []byte {
	return call("deposit(address,uint256,bytes20)", fixed(token.word()), fixed(word(amount)),
		fixed(append(append([]byte(nil), to...), make([]byte, 32-len(to))...)))
}

// CallApprove is the call by which a token lets a contract take an amount.
func CallApprove(spender Address, amount *big.Int) []byte {
	return call("approve(address,uint256)", fixed(spender.word()), fixed(word(amount)))
}
