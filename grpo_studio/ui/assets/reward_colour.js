/** The one colour scale of rewards, cividis: safe for colour-blind people, the same in light and dark. */
const STOPS = [[0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115], [138, 135, 121], [166, 157, 117], [196, 181, 108], [228, 207, 91], [254, 232, 56]];

export function rewardColour(value, [low, high]) {
  const share = Math.min(1, Math.max(0, (value - low) / (high - low || 1))) * (STOPS.length - 1);
  const place = Math.min(STOPS.length - 2, Math.floor(share));
  const mix = STOPS[place].map((channel, index) => Math.round(channel + (STOPS[place + 1][index] - channel) * (share - place)));
  return `rgb(${mix.join(",")})`;
}
