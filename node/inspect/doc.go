// Package inspect answers what commands ask of a network: status, stakes, offers, receipts, governance. It changes
// nothing.
package inspect
