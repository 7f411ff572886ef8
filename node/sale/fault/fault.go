// Package fault has the codes of the errors of the packages of a sale: what each is about. It decides nothing and
// prints nothing.
package fault

import "github.com/starling-network/starling/node/coded"

// Codes of errors. They are stable.
const (
	BadFolder   = "SALE_FOLDER"      // the files cannot be offered
	BadIndex    = "SALE_INDEX"       // the index is not that of the offer
	BadSealed   = "SALE_SEALED"      // the encrypted file is not that of the offer
	BadOpening  = "SALE_PROOF"       // drawn leaves are not shown to be those of the offer
	BadBox      = "SALE_BOX"         // a mask cannot be encrypted or decrypted
	Exists      = "SALE_EXISTS"      // a folder holds something else
	Unreachable = "SALE_UNREACHABLE" // no location of the offer gives the files
	Closed      = "SALE_CLOSED"      // the offer takes no new orders
	Late        = "SALE_LATE"        // the seller lied, and has the price
	OtherOffer  = "SALE_OTHER_OFFER" // the folder belongs to another offer
	Disk        = "SALE_DISK"        // a file of this machine cannot be read or written
)

// Error says why a step of a sale failed.
type Error = coded.Error

// OnDisk gives an error of a file its code.
func OnDisk(err error) error { return coded.OnDisk(err, Disk, "a file of the sale") }
