// SPDX-License-Identifier: Apache-2.0

// Package toy is the package that the tool's own test changes.
package toy

import (
	"errors"
	"log/slog"

	"k8s.io/utils/ptr"
)

// Cart holds the items of a purchase.
type Cart struct {
	Items    []string
	Currency string
	Gift     bool
	seen     int
}

// NewCart returns a cart.
func NewCart(gift bool) *Cart {
	return &Cart{Items: []string{"bag", "receipt"}, Currency: "EUR", Gift: gift}
}

// Add adds an item.
func (c *Cart) Add(item string) (*Cart, error) {
	c.seen++
	if item == "" {
		return nil, errEmpty()
	}
	c.Items = append(c.Items, item)
	return c, nil
}

// With is Add for items that are known to be valid.
func (c *Cart) With(item string) *Cart {
	c.Items = append(c.Items, item)
	return c
}

// Full returns a cart with two more items.
func Full() *Cart { return NewCart(false).With("apple").With("pear") }

// Discount returns the discount for a number of items.
func Discount(items int) int {
	if items >= 10 && items < 100 {
		return prices["some"]
	}
	return 0
}

var prices = map[string]int{"some": 5}

func errEmpty() error { return errors.New("an item needs a name") }

// dozen is an untyped constant, and so are expressions of it until they are used.
const dozen = 12

// Deposit returns the deposit for a bag.
func Deposit() *int32 { return ptr.To[int32](dozen - 2) }

// Tax returns the tax on an amount.
func Tax(amount int) int { return amount / 5 }

// Tip returns the tip for an amount.
func Tip(amount int) int {
	slog.Default().Info("left", "amount", amount)
	return amount / 20
}

// Unused is not reached by any test.
func Unused() string { return "unused" }
