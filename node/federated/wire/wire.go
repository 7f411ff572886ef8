// Package wire carries the messages of federated training over HTTP: the server of a coordinator, and the client of an
// owner, which connects outwards alone. An owner signs each request. The package decides nothing about a round.
package wire

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/exchange/federated"
)

// Addresses of the server, below its root.
const (
	pathJob     = "/federated/v1/job"
	pathJoin    = "/federated/v1/join"
	pathRound   = "/federated/v1/round"
	pathModel   = "/federated/v1/model"
	pathMessage = "/federated/v1/message"
)

// Headers of a request.
const (
	headerOwner     = "Starling-Owner"     // name, in hexadecimal
	headerBody      = "Starling-Body"      // federated.Body of the body
	headerSignature = "Starling-Signature" // of federated.Signed
)

// Purposes of requests that are no message of a phase.
const purposeJoin, purposeRound, purposeModel, purposeReply = "join", "round", "model", "reply/"

// Errors of requests, which a client gets back as the same.
var (
	ErrUnknown = errors.New("the coordinator does not take part of this owner")
	ErrGone    = errors.New("the round is over, or has another phase")
	ErrRefused = errors.New("the coordinator refuses the message")
)

// ErrNoAnswer is returned where no coordinator answers.
var ErrNoAnswer = errors.New("no coordinator answers")

var statuses = map[error]int{ErrUnknown: http.StatusForbidden, ErrGone: http.StatusGone,
	ErrRefused: http.StatusConflict}

// maxReason bounds the bytes of a reason that a server gives.
const maxReason = 1 << 10

// Sign adds the name and the signature of an owner to a request.
func Sign(r *http.Request, key ed25519.PrivateKey, job canon.Digest, purpose string, round uint32, body []byte) {
	d := federated.Body(body)
	r.Header.Set(headerOwner, hex.EncodeToString(key.Public().(ed25519.PublicKey)))
	r.Header.Set(headerBody, d.String())
	r.Header.Set(headerSignature, hex.EncodeToString(ed25519.Sign(key, federated.Signed(job, purpose, round, d))))
}

// signer is the owner that has signed a request, and the digest of the body that it promises.
func signer(r *http.Request, job canon.Digest, purpose string, round uint32) (ed25519.PublicKey, canon.Digest, error) {
	var body canon.Digest
	name, err1 := hex.DecodeString(r.Header.Get(headerOwner))
	signature, err2 := hex.DecodeString(r.Header.Get(headerSignature))
	err3 := body.UnmarshalText([]byte(r.Header.Get(headerBody)))
	if err := errors.Join(err1, err2, err3); err != nil || len(name) != ed25519.PublicKeySize ||
		!ed25519.Verify(name, federated.Signed(job, purpose, round, body), signature) {
		return nil, body, fmt.Errorf("%w: the request is not signed", ErrUnknown)
	}
	return name, body, nil
}

// number is a number of a query.
func number(r *http.Request, name string) (uint32, error) {
	n, err := strconv.ParseUint(r.URL.Query().Get(name), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%w: %s is no number", ErrRefused, name)
	}
	return uint32(n), nil
}
