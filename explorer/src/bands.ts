// Several seeds as bands: lowest and highest value at each time.

import type { Band } from "./charts";
import type { Chart } from "./series";

/** The bands of each chart; the runs are of one scenario, the first is the one that is drawn. */
export function bandsOf(all: Chart[][]): Map<string, Band[]> {
  const found = new Map<string, Band[]>();
  for (const chart of all[0]!) {
    const bands = chart.series.filter((one) => !one.points && !one.dash).flatMap((one): Band[] => {
      const same = all.flatMap((run) => run.find((other) => other.id === chart.id)?.series.find((other) => other.key === one.key) ?? []);
      const of = (pick: (...values: number[]) => number) => one.y.map((_, at) => {
        const values = same.flatMap((run) => run.y[at] ?? []);
        return values.length ? pick(...values) : null;
      });
      return same.length < 2 ? [] : [{ key: one.key, x: one.x, low: of(Math.min), high: of(Math.max) }];
    });
    found.set(chart.id, bands);
  }
  return found;
}
