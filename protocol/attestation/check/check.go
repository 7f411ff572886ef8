// Package check has the names of the checks of an attestation, and what each one says: the codes of refusals, and the
// dates between which a passed check holds. It checks nothing itself.
package check

import "fmt"

// Code names one check. The codes are part of the format.
type Code string

// Checks of every quote.
const (
	Size       Code = "size"       // of the quote and its collateral
	Format     Code = "format"     // of the quote
	Version    Code = "version"    // of the quote, and the kind of its key
	Root       Code = "root"       // the chain ends in a root that governance has pinned
	Chain      Code = "chain"      // each certificate is issued and signed by the next one
	Validity   Code = "validity"   // of each certificate
	CRL        Code = "crl"        // there is a list of revoked certificates of each issuer, which signed it
	CRLDate    Code = "crl_date"   // the lists are in force
	Revoked    Code = "revoked"    // no certificate of the chain is in them
	Signature  Code = "signature"  // of the quote, by the key that the chain certifies
	ReportData Code = "reportdata" // the quote is about the nonce, the worker and its transport key
	Debug      Code = "debug"      // the guest cannot be debugged
	Replay     Code = "replay"     // no older collateral than the chain has seen
	Nonce      Code = "nonce"      // the nonce is of a recent block
)

// Checks of reports of AMD SEV-SNP.
const (
	Product   Code = "product"   // of the certificate: one whose levels are known here
	Chip      Code = "chip"      // the report and the certificate are of the same chip
	ChipTCB   Code = "chip_tcb"  // the certificate is of the reported versions of firmware and microcode
	LeastTCB  Code = "least_tcb" // which are at least those that governance asks for
	Migration Code = "migration" // no agent may migrate the guest
	VMPL      Code = "vmpl"      // the report was asked for at the most privileged level of the guest
)

// Checks of quotes by Intel DCAP: TDX and SGX.
const (
	KeyBinding    Code = "key_binding"    // the quoting enclave vouches for the key of the quote
	QESignature   Code = "qe_signature"   // the report of the quoting enclave, by the certified key
	QEIdentity    Code = "qe_identity"    // the quoting enclave is the one that Intel describes
	QEIdentityDoc Code = "qe_document"    // the description is signed by Intel
	QEIdentityAge Code = "qe_date"        // and in force
	QEStatus      Code = "qe_status"      // the quoting enclave is up to date
	TCBDoc        Code = "tcb_document"   // the levels of the platform are signed by Intel
	TCBAge        Code = "tcb_date"       // and in force
	Platform      Code = "platform"       // and of this kind of processor
	TCBLevel      Code = "tcb_level"      // the platform is at one of these levels
	TCBStatus     Code = "tcb_status"     // which is up to date
	Module        Code = "module"         // the TDX module is one that Intel describes
	ModuleStatus  Code = "module_status"  // and up to date
	SigningKey    Code = "signing_key"    // the descriptions are signed by the certificate for this purpose
	PCKExtensions Code = "pck_extensions" // the certificate says which processor it is for
	Exceptions    Code = "exceptions"     // a page that the host takes away stops the guest, and is no exception in it
)

// texts say what each check compares.
var texts = map[Code]string{
	Size:          "the quote and its collateral are within the limits",
	Format:        "the quote has the form that its maker publishes",
	Version:       "the version of the quote and the kind of its key are known",
	Root:          "the chain of certificates ends in a root that the network has pinned",
	Chain:         "each certificate is issued and signed by the next one",
	Validity:      "each certificate is in force",
	CRL:           "each issuer has signed a list of the certificates that it has revoked",
	CRLDate:       "these lists are in force",
	Revoked:       "no certificate of the chain is revoked",
	Signature:     "the quote is signed by the key that the chain certifies",
	ReportData:    "the quote is about a block of this network, the key of the worker and its transport key",
	Debug:         "the host cannot debug the guest",
	Replay:        "the collateral is not older than the latest that the network has seen",
	Nonce:         "the block that gives the nonce is a recent one",
	Product:       "the chip is of a known product",
	Chip:          "the report and the certificate name the same chip",
	ChipTCB:       "the certificate is for the reported versions of firmware and microcode",
	LeastTCB:      "these versions are at least those that the network asks for",
	Migration:     "no agent may migrate the guest",
	VMPL:          "the report was asked for at the most privileged level of the guest",
	KeyBinding:    "the quoting enclave vouches for the key of the quote",
	QESignature:   "the report of the quoting enclave is signed by the key of the processor",
	QEIdentity:    "the quoting enclave is the one that Intel describes",
	QEIdentityDoc: "Intel has signed this description",
	QEIdentityAge: "this description is in force",
	QEStatus:      "the quoting enclave is up to date",
	TCBDoc:        "Intel has signed the list of security levels",
	TCBAge:        "this list is in force",
	Platform:      "this list is for the processor of the certificate",
	TCBLevel:      "the platform is at one of these levels",
	TCBStatus:     "this level is up to date",
	Module:        "the TDX module is one that Intel describes",
	ModuleStatus:  "the TDX module is up to date",
	SigningKey:    "lists and descriptions are signed by Intel's certificate for them",
	PCKExtensions: "the certificate names its processor",
	Exceptions:    "the host cannot cause exceptions in the guest by taking pages away",
}

// Text says what a check compares.
func (c Code) Text() string { return texts[c] }

// Failure is a check that a quote does not pass.
type Failure struct {
	Code Code
	Text string
}

// Error implements error.
func (f *Failure) Error() string { return fmt.Sprintf("%s: %s", f.Code, f.Text) }

// Fail returns a failure.
func Fail(c Code, format string, args ...any) error {
	return &Failure{Code: c, Text: fmt.Sprintf(format, args...)}
}

// Passed is a check that a quote passed. From and Until are when it holds, in seconds since 1970; 0: no date limits it.
type Passed struct {
	Code  Code  `cbor:"1,keyasint"`
	From  int64 `cbor:"2,keyasint,omitempty"`
	Until int64 `cbor:"3,keyasint,omitempty"`
}

// List collects the checks that a quote passed, in the order in which they were made.
type List []Passed

// Add appends a check without dates.
func (l *List) Add(codes ...Code) {
	for _, c := range codes {
		*l = append(*l, Passed{Code: c})
	}
}

// Between appends a check that holds between two dates. If the list has the check already, the dates become those
// between which both hold.
func (l *List) Between(c Code, from, until int64) {
	for i, p := range *l {
		if p.Code == c {
			(*l)[i].From, (*l)[i].Until = max(p.From, from), min(p.Until, until)
			return
		}
	}
	*l = append(*l, Passed{Code: c, From: from, Until: until})
}

// Until is the earliest date at which a check ends; 0: none ends.
func (l List) Until() (until int64) {
	for _, p := range l {
		if p.Until > 0 && (until == 0 || p.Until < until) {
			until = p.Until
		}
	}
	return until
}

// Seen is how late a piece of collateral is. A network that has seen a higher number of the same source refuses it.
type Seen struct {
	Source string `cbor:"1,keyasint"` // "crl/" and the digest of the key of an issuer, or "tcb/" and a technology
	Number int64  `cbor:"2,keyasint"`
}
