"""The tasks of Reasoning Gym 0.1.25 by category, and how many rows each makes by default. Nothing is imported.

`composite`, which mixes other tasks, is left out: its rows have no settings of their own.
"""

from __future__ import annotations

from typing import Final

_BY_CATEGORY: Final = {
    "algebra": (
        "complex_arithmetic intermediate_integration polynomial_equations polynomial_multiplication "
        "simple_equations simple_integration"
    ),
    "algorithmic": (
        "ab base_conversion binary_alternation binary_matrix caesar_cipher count_primes cryptarithm "
        "game_of_life game_of_life_halting graph_color group_anagrams isomorphic_strings jugs letter_counting "
        "letter_jumble manipulate_matrix number_filtering number_sorting palindrome_generation "
        "palindrome_partitioning pool_matrix ransom_note rotate_matrix rotten_oranges sentence_reordering "
        "spell_backward spiral_matrix string_insertion string_manipulation string_splitting string_synthesis "
        "word_ladder word_sequence_reversal word_sorting"
    ),
    "arc": "arc_1d arc_agi rearc",
    "arithmetic": (
        "basic_arithmetic bitwise_arithmetic calendar_arithmetic chain_sum count_bits decimal_arithmetic "
        "decimal_chain_sum dice fraction_simplification gcd gsm_symbolic lcm leg_counting number_format "
        "power_function prime_factorization products time_intervals"
    ),
    "code": "bf codeio",
    "cognition": (
        "color_cube_rotation figlet_font modulo_grid needle_haystack number_sequence rectangle_count rubiks_cube"
    ),
    "games": (
        "boxnet countdown emoji_mystery futoshiki kakurasu knight_swap mahjong_puzzle maze mini_sudoku "
        "n_queens puzzle24 rush_hour sokoban sudoku survo tower_of_hanoi tsumego"
    ),
    "geometry": "advanced_geometry simple_geometry",
    "graphs": "course_schedule family_relationships largest_island path_star quantum_lock shortest_path",
    "induction": "acre list_functions",
    "logic": "aiw circuit_logic knights_knaves propositional_logic self_reference syllogism zebra_puzzles",
    "probability": "coin_flip",
}
TASKS: Final = {name: category for category, names in _BY_CATEGORY.items() for name in names.split()}
"""Each task and its category."""
ORDINARY_SIZE: Final = 1000
_SLOW: Final = {
    "knight_swap": 12,
    "futoshiki": 36,
    "zebra_puzzles": 48,
    "puzzle24": 80,
    "sokoban": 80,
    "intermediate_integration": 120,
    "sudoku": 250,
    "countdown": 400,
    "quantum_lock": 400,
    "polynomial_equations": 450,
    "rubiks_cube": 450,
    "game_of_life": 750,
    "polynomial_multiplication": 750,
    "rearc": 800,
}
"""Rows that took about eight seconds on one core, where 1000 would take longer."""


def default_size(task: str) -> int:
    """How many rows a task makes when `dataset.params.size` does not say."""
    return _SLOW.get(task, ORDINARY_SIZE)


def is_slow(task: str) -> bool:
    """Whether its rows take so long to make that there are fewer of them by default."""
    return task in _SLOW
