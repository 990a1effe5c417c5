package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/proctor-ci/proctor/internal/config"
	"github.com/proctor-ci/proctor/internal/meter"
	"github.com/proctor-ci/proctor/internal/money"
)

// fromConfiguration is the source of a price that the configuration gives.
const fromConfiguration = "configuration"

// priceTable is the built-in table with the configuration's prices, which win.
func priceTable(own []config.Price, now time.Time) meter.Prices {
	t := meter.Embedded()
	for _, p := range own {
		t = t.With(meter.Price{
			Model: p.Model, Source: fromConfiguration, Date: now.UTC().Format(time.DateOnly),
			Rates: meter.Rates{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite5m: p.CacheWrite, CacheWrite1h: p.CacheWrite},
		})
	}
	return t
}

func pricesCommand(env Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "prices",
		Short: "List what models cost, where that was read, and on which day",
		Long: `Prices lists the table by which model calls are reserved and booked, in US dollars per million tokens. Prices of budget.price in
this repository's configuration (as it lies in the checkout) stand in it and win; nothing is fetched.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			own, name, err := ownPrices(env)
			if err != nil {
				return err
			}
			rows := priceTable(own, env.Now()).Rows()
			if asJSON {
				return pricesJSON(env.Stdout, rows)
			}
			return pricesText(env.Stdout, rows, name)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the table as JSON")
	return c
}

// ownPrices are those of the checkout's configuration. Outside a repository, or without a file, there are none.
func ownPrices(env Env) ([]config.Price, string, error) {
	top, err := checkoutOf(env.Dir)
	if err != nil {
		return nil, "", nil
	}
	name, data, err := config.Find(func(p string) ([]byte, error) { return os.ReadFile(filepath.Join(top, filepath.FromSlash(p))) })
	if err != nil || name == "" {
		return nil, "", err
	}
	cfg, err := config.Load(name, data)
	if err != nil {
		return nil, "", errors.Join(errors.New("the prices of the configuration cannot be read"), err)
	}
	return cfg.Budget.Price, name, nil
}

func pricesText(w io.Writer, rows []meter.Price, name string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MODEL\tINPUT\tOUTPUT\tCACHE READ\tWRITE 5M\tWRITE 1H\tREAD ON\tSOURCE")
	for _, p := range rows {
		priceLine(t, strings.Join(append([]string{p.Model}, p.Aliases...), ", "), p.Rates, p.Date, p.Source)
		if p.LongAbove > 0 {
			priceLine(t, fmt.Sprintf("  above %d tokens", p.LongAbove), p.Long, "", "")
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	where := "the configuration"
	if name != "" {
		where = name
	}
	_, err := fmt.Fprintf(w, "\nUS dollars per million tokens; a model's dated releases cost the same. Another price, or a model that is not here, goes into %s:\n\n"+
		"  budget: {price: {my-model: {input: 3, output: 15, cache_read: 0.3, cache_write: 3.75}}}\n\n"+
		"A model without a price is refused; with budget.unpriced: allow only time and ticks bound agent.model and review.model.\n", where)
	return err
}

func priceLine(w io.Writer, model string, r meter.Rates, date, source string) {
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", model, r.Input.Decimal(), r.Output.Decimal(), r.CacheRead.Decimal(), r.CacheWrite5m.Decimal(), r.CacheWrite1h.Decimal(), date, source)
}

type jsonRates struct {
	Input        money.USD `json:"input"`
	Output       money.USD `json:"output"`
	CacheRead    money.USD `json:"cache_read"`
	CacheWrite5m money.USD `json:"cache_write_5m"`
	CacheWrite1h money.USD `json:"cache_write_1h"`
}

type jsonPrice struct {
	Model   string   `json:"model"`
	Aliases []string `json:"aliases,omitempty"`
	jsonRates
	LongAbove int64      `json:"long_above,omitempty"` // prompt tokens
	Long      *jsonRates `json:"long,omitempty"`
	Source    string     `json:"source"`
	Date      string     `json:"date"`
}

func pricesJSON(w io.Writer, rows []meter.Price) error {
	out := []jsonPrice{}
	for _, p := range rows {
		j := jsonPrice{Model: p.Model, Aliases: p.Aliases, jsonRates: jsonRates(p.Rates), LongAbove: p.LongAbove, Source: p.Source, Date: p.Date}
		if p.LongAbove > 0 {
			long := jsonRates(p.Long)
			j.Long = &long
		}
		out = append(out, j)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(map[string]any{"unit": "US dollars per million tokens", "prices": out})
}
