package meter

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"sort"

	"github.com/proctor-ci/proctor/internal/money"
)

// Rates are prices in dollars per million tokens. All five are needed: a rate that is missing would
// make a kind of token free.
type Rates struct {
	Input, Output                         money.USD
	CacheRead, CacheWrite5m, CacheWrite1h money.USD
}

// Price is what a model costs and where that was read.
type Price struct {
	Model   string // the vendor's id without a date
	Aliases []string
	Rates
	// LongAbove is the number of prompt tokens (cache included) beyond which Long holds for the
	// whole request, output too; 0: there is no such tier.
	LongAbove int64
	Long      Rates
	Source    string // where that was read, in words; "configuration" for an override
	Date      string // the day on which the source said so, YYYY-MM-DD
}

// Prices is a table of models. The zero value prices nothing.
type Prices struct {
	rows []Price
}

//go:embed prices.json
var embedded []byte

type rateRow struct {
	Input        dollars `json:"input"`
	Output       dollars `json:"output"`
	CacheRead    dollars `json:"cache_read"`
	CacheWrite5m dollars `json:"cache_write_5m"`
	CacheWrite1h dollars `json:"cache_write_1h"`
}

type priceRow struct {
	Model   string   `json:"model"`
	Aliases []string `json:"aliases"`
	rateRow
	Long *struct {
		Above int64 `json:"above"`
		rateRow
	} `json:"long"`
	Source string `json:"source"`
	Date   string `json:"date"`
}

// dollars is written as a string, so that no reader turns it into a float on the way.
type dollars money.USD

func (d *dollars) UnmarshalText(b []byte) error {
	v, err := money.Parse(string(b))
	*d = dollars(v)
	return err
}

func (r rateRow) rates() Rates {
	return Rates{
		Input: money.USD(r.Input), Output: money.USD(r.Output), CacheRead: money.USD(r.CacheRead),
		CacheWrite5m: money.USD(r.CacheWrite5m), CacheWrite1h: money.USD(r.CacheWrite1h),
	}
}

// Embedded returns the table that comes with the program.
func Embedded() Prices {
	p, err := ParsePrices(embedded)
	if err != nil {
		panic("embedded price table: " + err.Error()) // a test reads every row
	}
	return p
}

// ParsePrices reads a table in the form of prices.json: dollars per million tokens as decimal
// strings, a source and a date in each row. It refuses a row without one of the five rates.
func ParsePrices(b []byte) (Prices, error) {
	var file struct {
		Rows []priceRow `json:"rows"`
	}
	if err := json.Unmarshal(b, &file); err != nil {
		return Prices{}, fmt.Errorf("read price table: %w", err)
	}
	var table Prices
	for i, r := range file.Rows {
		p := Price{Model: r.Model, Aliases: r.Aliases, Rates: r.rates(), Source: r.Source, Date: r.Date}
		if r.Long != nil {
			p.LongAbove, p.Long = r.Long.Above, r.Long.rates()
		}
		if err := p.validate(); err != nil {
			return Prices{}, fmt.Errorf("price table row %d: %w", i+1, err)
		}
		table = table.With(p)
	}
	return table, nil
}

func (p Price) validate() error {
	switch {
	case p.Model == "":
		return fmt.Errorf("no model")
	case !p.complete() || (p.LongAbove > 0 && !p.Long.complete()):
		return fmt.Errorf("model %s: needs input, output, cache_read, cache_write_5m and cache_write_1h above zero", p.Model)
	case p.Source == "" || p.Date == "":
		return fmt.Errorf("model %s: needs the source of its price and a date", p.Model)
	}
	return nil
}

func (r Rates) complete() bool {
	return r.Input > 0 && r.Output > 0 && r.CacheRead > 0 && r.CacheWrite5m > 0 && r.CacheWrite1h > 0
}

// With returns the table with p added; a row of the same model is replaced.
func (t Prices) With(p Price) Prices {
	rows := slices.DeleteFunc(slices.Clone(t.rows), func(o Price) bool { return o.Model == p.Model })
	return Prices{rows: append(rows, p)}
}

// Rows returns the table ordered by model.
func (t Prices) Rows() []Price {
	rows := slices.Clone(t.rows)
	sort.Slice(rows, func(i, j int) bool { return rows[i].Model < rows[j].Model })
	return rows
}

// Find returns the price of a model. It knows a model by its exact id, by an alias, and by its id
// with a release date behind it ("-20250929", "-2025-09-29"), and by nothing else: a family name that happens to be
// the beginning of an unknown model must not lend it a price.
func (t Prices) Find(model string) (Price, bool) {
	for _, name := range []string{model, undated(model)} {
		for _, p := range t.rows {
			if p.Model == name || slices.Contains(p.Aliases, name) {
				return p, true
			}
		}
	}
	return Price{}, false
}

// release is a date behind a model's id, as the vendors write it.
var release = regexp.MustCompile(`-(\d{8}|\d{4}-\d{2}-\d{2})$`)

// undated cuts a trailing "-YYYYMMDD" or "-YYYY-MM-DD".
func undated(model string) string {
	if at := release.FindStringIndex(model); at != nil && at[0] > 0 {
		return model[:at[0]]
	}
	return model
}

// Usage is what one call used. Input excludes the cache, Output includes Reasoning.
type Usage struct {
	Input, Output, CacheRead, CacheWrite5m, CacheWrite1h int64
	Reasoning                                            int64
}

func (u Usage) prompt() int64 { return u.Input + u.CacheRead + u.CacheWrite5m + u.CacheWrite1h }

// Cost returns what u costs, rounded up to a nano-dollar, and false when u cannot be true: a count
// below zero or beyond any model's reach.
func (p Price) Cost(u Usage) (money.USD, bool) {
	const reach = 100_000_000 // no context window comes near it, and the products below stay in range
	for _, n := range []int64{u.Input, u.Output, u.CacheRead, u.CacheWrite5m, u.CacheWrite1h} {
		if n < 0 || n > reach {
			return 0, false
		}
	}
	r := p.Rates
	if p.LongAbove > 0 && u.prompt() > p.LongAbove {
		r = p.Long
	}
	var sum money.USD
	for _, part := range []struct {
		tokens int64
		rate   money.USD
	}{
		{u.Input, r.Input}, {u.Output, r.Output}, {u.CacheRead, r.CacheRead},
		{u.CacheWrite5m, r.CacheWrite5m}, {u.CacheWrite1h, r.CacheWrite1h},
	} {
		sum = sum.Add(perMillion(part.tokens, part.rate))
	}
	return sum, true
}

func perMillion(tokens int64, rate money.USD) money.USD {
	const million = 1_000_000
	if rate > 0 && tokens > math.MaxInt64/int64(rate) {
		return money.Max
	}
	n := tokens * int64(rate)
	return money.USD(n/million + min(n%million, 1))
}
